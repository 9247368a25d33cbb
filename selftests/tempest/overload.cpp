// SPDX-License-Identifier: GPL-2.0-only
/* TPPI_send() of C++: each call sends what the function of C with the same items sends. */
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

#include <tempest.hpp>

namespace {

std::vector<int> received;
std::atomic<int> arrived;

void take(TPPI_NodeId, int size)
{
	received.resize(size / sizeof(int));
	TPPI_recv_R(received.data(), size);
	arrived++;
}

/* What arrives by a call. */
template <typename Send>
std::vector<int> body_of(Send send)
{
	int before = arrived;

	send();
	while (arrived == before)
		usleep(10);
	return received;
}

template <typename One, typename Other>
void same(const char *what, One one, Other other)
{
	std::vector<int> expected = body_of(one);

	if (body_of(other) == expected)
		return;
	std::printf("# %s: another body\n", what);
	std::fflush(stdout);
	std::_Exit(1);
}

int region[3] = { 5, 6, 7 };

/* Where there is something to forward. */
void forward(TPPI_NodeId, int)
{
	TPPI_send(0, take, TPPI_forward(8), 3, region, 8, TPPI_forward(4));
}

void forward_as_c(TPPI_NodeId, int)
{
	TPPI_send_FWRF(0, take, 8, 3, region, 8, 4);
}

void overloads()
{
	char *block = TPPI_SEG_BASE + 64;
	const short narrow = -2;

	TPPI_alloc_and_map(TPPI_SEG_BASE, 0, TPPI_Blk_Writable, 0, nullptr);
	std::memset(block, 9, TPPI_TAG_BLK_SIZE);
	same("nothing", [] { TPPI_send_items(0, take, ""); }, [] { TPPI_send(0, take); });
	same("W", [] { TPPI_send_W(0, take, 1); }, [] { TPPI_send(0, take, 1); });
	same("W, narrow", [] { TPPI_send_W(0, take, -2); }, [=] { TPPI_send(0, take, narrow); });
	same("R", [] { TPPI_send_R(0, take, region, 12); },
	     [] { TPPI_send(0, take, region, sizeof(region)); });
	same("WBaW", [=] { TPPI_send_WBaW(0, take, 1, block, 32, TPPI_Blk_No_Tag_Change, 2); },
	     [=] { TPPI_send(0, take, 1, block, 32, TPPI_Blk_No_Tag_Change, 2); });
	same("RR", [] { TPPI_send_RR(0, take, region, 4, region + 1, 8); },
	     [] { TPPI_send(0, take, region, 4, region + 1, 8); });
	same("RW", [] { TPPI_send_RW(0, take, region, 4, 8); },
	     [] { TPPI_send(0, take, region, 4, 8); });
	same("F", [] { TPPI_send_R(0, forward_as_c, region, 12); },
	     [] { TPPI_send_R(0, forward, region, 12); });
}

} // namespace

/* As an int it would be one that can be sent. */
void too_long()
{
	TPPI_send(0, take, region, (static_cast<std::size_t>(1) << 32) + 4);
}

int main(int argc, char **argv)
{
	std::string test = argc == 2 ? argv[1] : "";

	if (test == "--list")
		std::printf("overloads - 0 0\ntoo-long - %d 0\n", SIGABRT);
	else if (test == "too-long")
		too_long();
	else
		overloads();
	return 0;
}
