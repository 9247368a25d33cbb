// SPDX-License-Identifier: GPL-2.0-only
// Templates, which the linker merges, and exceptions that are thrown between checked accesses.
#include <cstdio>
#include <stdexcept>
#include <vector>

template<typename T> struct Sum {
	T total{};
	__attribute__((noinline)) void add(const T *p, int n)
	{
		for (int i = 0; i < n; i++) {
			if (p[i] == 13)
				throw std::runtime_error("thirteen");
			total += p[i];
		}
	}
};

int main()
{
	std::vector<int> whole(20, 3);
	std::vector<double> real(20, 0.5);
	Sum<int> i;
	Sum<double> r;

	i.add(whole.data(), 20);
	r.add(real.data(), 20);
	whole[10] = 13;
	try {
		i.add(whole.data(), 20);
	} catch (const std::exception &e) {
		std::printf("%s ", e.what());
	}
	std::printf("%d %.1f\n", i.total, r.total);
	return 0;
}
