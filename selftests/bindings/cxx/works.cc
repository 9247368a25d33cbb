// SPDX-License-Identifier: GPL-2.0-only
/* Work queues and workers: results, what is given back, what is thrown. */
#include <map>
#include <stdexcept>
#include <thread>

#include <unistd.h>

#include "test.hh"

using hamlyn::status;

static_assert(!std::is_copy_constructible_v<hamlyn::worker>);
static_assert(!std::is_copy_constructible_v<hamlyn::work_item>);

namespace {

std::string here(const char *what)
{
	return "@hamlyn-cxx-" + std::to_string(::getpid()) + "-" + what;
}

/* Doubles each item, but for some. */
void work(const std::string &path)
{
	auto w = hamlyn::worker::dial(path, patience());

	while (auto i = w->take(patience())) {
		if (i->text() == "drop" && i->delivery() < 3)
			continue;
		if (i->text() == "fail") {
			(void)i->fail(patience());
			continue;
		}
		(void)i->done(std::string(i->text()) + std::string(i->text()), patience());
	}
}

} // namespace

TEST(items_are_done)
{
	const std::string path = here("work");
	std::map<std::uint64_t, std::string> done, failed;
	hamlyn::work_options options;

	options.deliveries = 3;
	hamlyn::work_queue q(path, [&](std::uint64_t id, hamlyn::bytes r) { done[id] = r.text(); },
			     [&](std::uint64_t id, hamlyn::bytes d) { failed[id] = d.text(); },
			     options);
	std::thread t(work, path);
	CHECK(*q.add("ab") == 1 && *q.add("drop") == 2 && *q.add("fail") == 3);
	CHECK(q.run(patience()) == status::ok);
	CHECK(done.size() == 2 && done[1] == "abab" && done[2] == "dropdrop");
	CHECK(failed.size() == 1 && failed[3] == "fail");
	CHECK(q.stats().deliveries == 7 && q.stats().workers == 1);
	CHECK(q.close(patience()) == status::ok);
	t.join();
	CHECK(ERRNO_OF((void)q.run()) == EBADF);
}

TEST(full_and_thrown)
{
	const std::string path = here("thrown");
	hamlyn::work_options options;

	options.items = 1;
	hamlyn::work_queue q(path, [](std::uint64_t, hamlyn::bytes) {
		throw std::runtime_error("no good");
	}, {}, options);
	bool thrown = false;

	CHECK(q.add("a", hamlyn::nowait));
	CHECK(q.add("b", hamlyn::nowait).why() == status::again);
	CHECK(q.run(std::chrono::milliseconds(1)) == status::again);
	std::thread t(work, path);
	try {
		(void)q.run(patience());
	} catch (const std::runtime_error &) {
		thrown = true;
	}
	CHECK(thrown && q.run(hamlyn::nowait) == status::ok);
	(void)q.close(patience());
	t.join();
}
