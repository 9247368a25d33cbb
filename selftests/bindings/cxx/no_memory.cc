// SPDX-License-Identifier: GPL-2.0-only
/* C++ memory that runs out: nothing that was received is lost, or given back. */
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "test.hh"

using hamlyn::status;

static bool no_memory;

void *operator new(std::size_t size)
{
	void *p = no_memory ? nullptr : std::malloc(size);

	if (!p)
		throw std::bad_alloc();
	return p;
}

void operator delete(void *p) noexcept
{
	std::free(p);
}

void operator delete(void *p, std::size_t) noexcept
{
	std::free(p);
}

namespace {

/* The next record, at first without memory; whether that was refused is counted. */
hamlyn::result<hamlyn::record> receive(hamlyn::stream_receiver &from, int &refused)
{
	no_memory = true;
	try {
		auto r = from.receive(patience());

		no_memory = false;
		return r;
	} catch (const std::bad_alloc &) {
		no_memory = false;
		refused++;
	}
	return from.receive(patience());
}

} // namespace

TEST(records_stay_held)
{
	const int buffers = 64;
	hamlyn::stream_options options = {};
	hamlyn::device dev;
	hamlyn::manager m(dev);
	int refused = 0;

	options.buffers = buffers;
	options.buffer_size = 128;
	options.max_buffer_size = 128;
	hamlyn::stream_receiver to(m, options);
	hamlyn::stream_sender from(m, to.seed());
	std::vector<hamlyn::record> held;
	/* One buffer has what the sender says first. */
	for (int i = 1; i < buffers; i++) {
		std::string text = std::to_string(i);

		CHECK(from.send(text, patience()));
		CHECK(from.flush(patience()) == status::ok);
		auto r = receive(to, refused);
		CHECK(r && r->text() == text);
		held.push_back(std::move(*r));
	}
	CHECK(refused);
	/* None was given back: there is no room, and nobody has written into them. */
	std::string more(128, 'x');
	while (from.send(more, hamlyn::nowait))
		;
	CHECK(from.flush(hamlyn::nowait) == status::again);
	for (int i = 1; i < buffers; i++)
		CHECK(held[static_cast<std::size_t>(i - 1)].text() == std::to_string(i));
}
