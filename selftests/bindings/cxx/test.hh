// SPDX-License-Identifier: GPL-2.0-only
/* Tests as functions, assertions as exceptions, results as TAP. */
#ifndef HAMLYN_TEST_HH
#define HAMLYN_TEST_HH

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <hamlyn/hamlyn.hpp>

#define TEST_STRING_(x)	#x
#define TEST_STRING(x)	TEST_STRING_(x)

#define CHECK(what) \
	do { \
		if (!(what)) \
			throw std::logic_error(__FILE__ ":" TEST_STRING(__LINE__) ": " #what); \
	} while (0)

/* Evaluates the expression and returns the errno of the hamlyn::error that it throws, or 0. */
#define ERRNO_OF(...) \
	[&]() -> int { \
		try { \
			(void)(__VA_ARGS__); \
		} catch (const hamlyn::error &e) { \
			return e.number(); \
		} \
		return 0; \
	}()

struct test {
	const char *name;
	void (*run)();
};

inline std::vector<test> &tests()
{
	static std::vector<test> all;

	return all;
}

struct test_added {
	test_added(const char *name, void (*run)()) { tests().push_back({ name, run }); }
};

#define TEST(name) \
	static void name(); \
	static const test_added name##_added(#name, name); \
	static void name()

inline std::chrono::seconds patience()
{
	const char *scale = std::getenv("HAMLYN_TEST_SCALE");

	return std::chrono::seconds(10 * (scale ? std::atoi(scale) : 1));
}

int main()
{
	int passed = 0, failed = 0;

	for (const test &t : tests()) {
		std::string why;

		try {
			t.run();
		} catch (const std::exception &e) {
			why = e.what();
		}
		if (why.empty()) {
			std::printf("ok - %s\n", t.name);
			passed++;
		} else {
			std::printf("not ok - %s\n# %s\n", t.name, why.c_str());
			failed++;
		}
		std::fflush(stdout);
	}
	std::printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}

#endif
