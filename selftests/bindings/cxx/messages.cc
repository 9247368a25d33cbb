// SPDX-License-Identifier: GPL-2.0-only
/* Areas, queues, slots, termini and watches. */
#include <thread>

#include "test.hh"

using namespace std::chrono_literals;

namespace {

struct receiving {
	hamlyn::device dev;
	hamlyn::area area{ dev, 65536 };
	hamlyn::notification_queue nq{ dev, 64 };
	hamlyn::slot slot{ area, nq };
};

} // namespace

TEST(a_message_and_a_word)
{
	receiving r;
	hamlyn::terminus t(r.dev);
	auto sent = t.send(r.slot.ticket(), "hello", "meta");
	std::optional<hamlyn::notification> n;

	/* The slot has no metadata entries. */
	CHECK(sent && t.wait(*sent, patience()));
	CHECK(!r.nq.receive());
	sent = t.send(r.slot.ticket(), "hello");
	CHECK(sent && t.wait(*sent, patience()) && t.done(*sent));
	n = r.nq.receive();
	CHECK(n && n->slot == r.slot.number() && n->length == 5);
	CHECK(r.area.memory().subview(0, 5).text() == "hello");
	CHECK(!r.nq.receive());
	CHECK(!r.nq.receive(1ms));
	CHECK(r.nq.receive(1ms).why() == hamlyn::status::again);
	CHECK(t.send_word(r.slot.fast_ticket(), 42));
	auto waited = r.nq.receive(hamlyn::forever);
	CHECK(waited && waited->data == 42 && waited->flags & HAMLYN_NQE_FAST);
	CHECK(r.nq.lost() == 0);
	CHECK(t.stats().messages == 3);
	CHECK(r.slot.stats().rejects[HAMLYN_REJECT_METADATA] +
	      r.slot.stats().rejects[HAMLYN_REJECT_FORMAT] <= 1);
}

TEST(from_a_bound_area)
{
	receiving r;
	hamlyn::terminus t(r.dev);
	std::vector<std::byte> wrong(3000);

	CHECK(ERRNO_OF(t.send(r.slot.ticket(), wrong)) == EFAULT);
	{
		hamlyn::area from(r.dev, 3000);

		CHECK(from.size() >= 3000 && from.page_size() >= 4096);
		std::memset(from.data(), 7, 3000);
		t.bind(0, from);
		auto sent = t.send(r.slot.ticket(), from.memory().subview(0, 3000));
		CHECK(sent && t.wait(*sent));
	}
	/* The terminus still has it. */
	CHECK(r.nq.receive(patience()));
	CHECK(r.area.data()[2999] == std::byte{ 7 });
	t.unbind(0);
	CHECK(ERRNO_OF(t.bind(HAMLYN_MAX_TAGS, r.area)) == EINVAL);
}

TEST(destroyed_in_any_order)
{
	std::optional<hamlyn::device> dev(std::in_place);
	std::optional<hamlyn::area> area(std::in_place, *dev, 4096);
	std::optional<hamlyn::notification_queue> nq(std::in_place, *dev, 8);
	std::optional<hamlyn::slot> slot(std::in_place, *area, *nq);
	std::optional<hamlyn::terminus> t(std::in_place, *dev);
	std::optional<hamlyn::watch> watch(std::in_place, *nq, slot->ticket(), 5);
	std::byte *data = area->data();

	dev.reset();
	area.reset();
	CHECK(t->send(slot->ticket(), "hello"));
	CHECK(nq->receive(patience()));
	CHECK(data[0] == std::byte{ 'h' });
	t.reset();
	slot.reset();
	auto gone = nq->receive(patience());
	CHECK(gone && gone->flags & HAMLYN_NQE_PEER_GONE && gone->data == 5);
	nq.reset();
	watch.reset();
}

TEST(moved_from_and_closed)
{
	receiving r;
	hamlyn::slot slot = std::move(r.slot);
	hamlyn::terminus t(r.dev);
	hamlyn::terminus other = std::move(t);
	hamlyn::area area(r.dev, 4096);

	CHECK(!r.slot.handle() && slot.handle());
	CHECK(ERRNO_OF(r.slot.rekey()) == EBADF);
	CHECK(ERRNO_OF(r.slot.ticket()) == EBADF);
	CHECK(ERRNO_OF(t.import(0)) == EBADF);
	CHECK(ERRNO_OF(t.stats()) == EBADF);
	r.slot.destroy();
	r.slot = std::move(slot);
	t = std::move(other);
	CHECK(t.send(r.slot.ticket(), "back"));
	CHECK(r.nq.receive(patience()));
	area.close();
	CHECK(ERRNO_OF(area.size()) == EBADF);
	CHECK(ERRNO_OF(hamlyn::slot(area, r.nq)) == EBADF);
	r.nq.close();
	CHECK(ERRNO_OF(r.nq.receive(1ms)) == EBADF);
	r.slot.destroy();
	CHECK(!r.slot.handle());
	hamlyn::device moved = std::move(r.dev);
	CHECK(ERRNO_OF(r.dev.query()) == EBADF);
	CHECK(ERRNO_OF(hamlyn::area(r.dev, 1)) == EBADF);
	CHECK(moved.query().abi_version == HAMLYN_ABI_VERSION);
}

TEST(errors_with_explanations)
{
	hamlyn::device dev;

	CHECK(ERRNO_OF(hamlyn::device("nonsense")) == EINVAL);
	CHECK(ERRNO_OF(hamlyn::area(dev, 0)) == EINVAL);
	try {
		hamlyn::notification_queue(dev, 3);
		CHECK(!"three entries are no power of two");
	} catch (const hamlyn::error &e) {
		CHECK(e.code() == std::errc::invalid_argument);
		CHECK(e.explanation()[0]);
		CHECK(std::string(e.what()).find("h_nq_create: ") == 0);
		CHECK(std::string(e.what()).find(e.explanation()) != std::string::npos);
	}
	if (dev.embedded())
		CHECK(ERRNO_OF(dev.fd()) == EOPNOTSUPP);
	h_fabric_id id = dev.fabric();
	CHECK(dev.reaches(id));
	id.bytes[0] ^= 1;
	CHECK(!dev.reaches(id));
}

TEST(paranoid_entries)
{
	hamlyn::device dev;
	hamlyn::area area(dev, 8192);
	hamlyn::notification_queue nq(dev, 16);
	hamlyn::slot_options options;
	hamlyn::terminus t(dev);

	options.length = 4096;
	options.metadata = &area;
	options.metadata_base = 4096;
	options.metadata_count = 4;
	options.mode = HAMLYN_SLOT_PARANOID_ONE_SHOT;
	hamlyn::slot slot(area, nq, options);
	hamlyn::ticket entry = slot.grant(2, 100, 50);
	CHECK(t.send(entry, "one", "user"));
	CHECK(t.send(entry, "two"));
	auto n = nq.receive(patience());
	CHECK(n && n->index == 2 && area.memory().subview(100, 3).text() == "one");
	CHECK(slot.entry(2)->meta_length == 4 && !std::memcmp(slot.entry(2)->user, "user", 4));
	CHECK(!slot.entry(4));
	CHECK(!nq.receive(1ms));
	slot.arm(2);
	CHECK(t.send(entry, "six"));
	CHECK(nq.receive(patience()));
	slot.arm(2);
	slot.revoke(2);
	CHECK(t.send(entry, "ten"));
	CHECK(!nq.receive(1ms));
	CHECK(ERRNO_OF(slot.arm(4)) == ERANGE);
}

TEST(tickets_that_are_descriptors)
{
	receiving r;
	hamlyn::terminus t(r.dev);
	hamlyn::descriptor fd = r.slot.ticket_fd();
	hamlyn::ticket imported = t.import(fd.get());

	CHECK(t.send(imported, "by descriptor"));
	CHECK(r.nq.receive(patience()));
	t.drop(imported);
	CHECK(ERRNO_OF(t.drop(imported)) == ENOKEY);
	CHECK(ERRNO_OF(t.import(-1)) == EBADF);
	hamlyn::watch w(r.nq, fd.get(), 9);
	r.slot.rekey();
	auto gone = r.nq.receive(patience());
	CHECK(gone && gone->data == 9);
}

TEST(two_threads_ping_pong)
{
	constexpr int rounds = 2000;
	receiving ping, pong;
	hamlyn::ticket to_ping = ping.slot.fast_ticket(), to_pong = pong.slot.fast_ticket();
	std::exception_ptr failed;

	std::thread other([&] {
		try {
			hamlyn::terminus t(pong.dev);

			for (int i = 0; i < rounds; i++) {
				auto n = pong.nq.receive(patience());

				CHECK(n);
				CHECK(t.send_word(to_ping, n->data + 1));
			}
		} catch (...) {
			failed = std::current_exception();
		}
	});
	std::uint64_t word = 0;
	hamlyn::terminus t(ping.dev);
	for (int i = 0; i < rounds; i++) {
		if (!t.send_word(to_pong, word))
			break;
		auto n = ping.nq.receive(patience());
		if (!n)
			break;
		word = n->data;
	}
	other.join();
	if (failed)
		std::rethrow_exception(failed);
	CHECK(word == rounds);
}

TEST(device_calls)
{
	hamlyn::device dev;
	std::uint64_t sequence = 0;

	CHECK(!dev.name().empty());
	CHECK(dev.query().max_slots > 0);
	if (!dev.embedded())
		return;
	CHECK(dev.stats().messages < UINT64_MAX);
	dev.audit(sequence);
	dev.set_watchdog(0ms);
	CHECK(ERRNO_OF(dev.set_watchdog(std::chrono::milliseconds(1LL << 32))) == EINVAL);
	CHECK(ERRNO_OF(dev.set_watchdog(-1ms)) == EINVAL);
	dev.feed_watchdog();
	CHECK(ERRNO_OF(dev.set_state(HAMLYN_NIC_UNFED)) == EINVAL);
}
