// SPDX-License-Identifier: GPL-2.0-only
/* Datagrams, tagged remote writes, group receives, gathers, barriers. */
#include <cstring>
#include <thread>

#include "test.hh"

using namespace std::chrono_literals;
using hamlyn::status;

static_assert(!std::is_copy_constructible_v<hamlyn::datagram>);
static_assert(!std::is_copy_constructible_v<hamlyn::datagram_receiver>);
static_assert(!std::is_copy_constructible_v<hamlyn::tagged_receiver>);
static_assert(!std::is_copy_constructible_v<hamlyn::group>);
static_assert(std::is_nothrow_move_constructible_v<hamlyn::datagram_receiver>);
static_assert(std::is_nothrow_move_constructible_v<hamlyn::tagged_receiver>);
static_assert(std::is_nothrow_move_constructible_v<hamlyn::group>);
static_assert(std::is_trivially_copyable_v<hamlyn::share>);
static_assert(std::is_trivially_copyable_v<hamlyn::datagram_address>);
static_assert(std::is_trivially_copyable_v<hamlyn::tagged_address>);

namespace {

struct on_device {
	hamlyn::device dev;
	hamlyn::manager m{ dev };
};

} // namespace

TEST(a_datagram)
{
	on_device d;
	hamlyn::datagram_receiver r(d.m, 8192);
	auto to = hamlyn::datagram_address::resolve(r.seed());

	CHECK(r.receive(hamlyn::nowait).why() == status::again);
	CHECK(to.send(d.m, "hello", 100) == status::ok);
	auto got = r.receive(patience());
	CHECK(got && got->text() == "hello" && got->offset() == 100 && !got->reply());
	/* It is not ready while this one is held. */
	CHECK(to.send(d.m, "lost") == status::ok);
	CHECK(r.receive(5ms).why() == status::again);
	CHECK(got->text() == "hello");
	got->release();
	CHECK(got->size() == 0);
	CHECK(to.send(d.m, "again") == status::ok);
	CHECK(r.receive(patience()));
	CHECK(r.stats().received == 2 && r.stats().dropped == 1);
	CHECK(ERRNO_OF((void)to.send(d.m, "outside", 8190)) == ERANGE);
	CHECK(ERRNO_OF(hamlyn::datagram_address::resolve(hamlyn::seed())) == EINVAL);
}

TEST(a_datagram_with_an_answer)
{
	on_device d;
	hamlyn::manager other(d.dev);
	hamlyn::datagram_receiver server(other), replies(d.m);
	auto to = hamlyn::datagram_address::resolve(server.seed());
	std::thread thread([&] {
		try {
			auto got = server.receive(patience());

			if (got && got->reply())
				(void)got->reply()->send(other, "answer");
		} catch (const std::exception &) {
		}
	});
	auto answer = replies.request(to, "question", patience());

	thread.join();
	CHECK(answer && answer->text() == "answer");
}

TEST(datagrams_revoked)
{
	on_device d;
	hamlyn::datagram_receiver r(d.m);
	auto old = hamlyn::datagram_address::resolve(r.seed());
	auto now = hamlyn::datagram_address::resolve(r.rekey());

	CHECK(old.send(d.m, "void") == status::ok);
	CHECK(now.send(d.m, "good") == status::ok);
	auto got = r.receive(patience());
	CHECK(got && got->text() == "good");
	r.revoke();
	hamlyn::datagram_receiver moved = std::move(r);
	CHECK(ERRNO_OF((void)r.receive(1ms)) == EBADF);
	CHECK(got->text() == "good");
	moved.close();
	CHECK(got->text() == "good");
}

TEST(tagged_writes)
{
	on_device d;
	hamlyn::tagged_options options = {};
	options.length = 1000;
	hamlyn::tagged_receiver r(d.m, options);
	auto to = hamlyn::tagged_address::resolve(r.seed());

	CHECK(r.memory().size() == 1000);
	CHECK(to.send(d.m, "one", 0, 1) == status::ok);
	CHECK(to.send(d.m, "two!", 500, 2) == status::ok);
	auto two = r.receive_tag(2, patience());
	auto one = r.receive(patience());
	CHECK(two && two->tag == 2 && two->length == 4);
	CHECK(one && one->tag == 1 && one->length == 3);
	CHECK(r.memory().subview(500, 4).text() == "two!");
	CHECK(r.receive(1ms).why() == status::again);
	bool called = false;
	r.on_ready([&] { called = true; });
	CHECK(to.send(d.m, "x", 0, 3) == status::ok);
	for (int i = 0; i < 1000 && !called; i++) {
		d.m.dispatch();
		std::this_thread::sleep_for(1ms);
	}
	CHECK(called);
	hamlyn::seed renewed = r.rekey();
	CHECK(hamlyn::tagged_address::resolve(renewed).send(d.m, "y", 0, 4) == status::ok);
	CHECK(r.receive_tag(4, patience()));
	CHECK(ERRNO_OF((void)to.send(d.m, "z", 1000, 5)) == ERANGE);
}

TEST(a_group)
{
	on_device d;
	hamlyn::group g(d.m, 10);
	hamlyn::share all = g.share();
	std::vector<hamlyn::share> parts = all.split({ 3, 3, 4 });

	CHECK(parts.size() == 3);
	CHECK(ERRNO_OF(all.split(2)) == EINVAL);
	CHECK(parts[0].send(d.m, "abc") == status::ok);
	CHECK(g.receive(1ms).why() == status::again);
	CHECK(ERRNO_OF(g.reset()) == EBUSY);
	CHECK(hamlyn::share::from_seed(parts[1].to_seed()).send(d.m, "def") == status::ok);
	std::vector<hamlyn::share> halves = parts[2].split(2);
	CHECK(halves[0].send(d.m, "gh") == status::ok);
	CHECK(halves[1].send(d.m, "ij") == status::ok);
	auto got = g.receive(patience());
	CHECK(got && got->text() == "abcdefghij");
	CHECK(g.receive(patience()));
	g.renew();
	CHECK(g.share().send(d.m, "0123456789") == status::ok);
	CHECK(g.receive(patience())->text() == "0123456789");
	hamlyn::group moved = std::move(g);
	CHECK(ERRNO_OF((void)g.receive(1ms)) == EBADF);
	moved.close();
}

TEST(a_gather)
{
	on_device d;
	hamlyn::manager other(d.dev);
	hamlyn::gather root(d.m, { 3, 0, 2 });
	std::vector<hamlyn::gather_member> members;
	const char *parts[] = { "abc", "", "de" };

	for (std::uint32_t i = 0; i < 3; i++)
		members.emplace_back(other, root.seed(i));
	CHECK(ERRNO_OF(root.seed(3)) == ERANGE);
	CHECK(members[0].length() == 3 && members[1].length() == 0);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 3; i++) {
			hamlyn::bytes part(parts[i], std::strlen(parts[i]));

			CHECK(members[i].send(part, patience()) == status::ok);
		}
		auto got = root.receive(patience());
		CHECK(got && got->text() == "abcde");
		CHECK(root.part(*got, 2).text() == "de" && root.part(*got, 1).empty());
		root.release();
	}
	CHECK(ERRNO_OF(root.release()) == EINVAL);
	CHECK(root.receive(1ms).why() == status::again);
	CHECK(ERRNO_OF((void)members[2].send("too long", patience())) == ERANGE);
	hamlyn::gather_member moved = std::move(members[0]);
	CHECK(ERRNO_OF((void)members[0].send("x")) == EBADF);
	hamlyn::gather gone = std::move(root);
	gone.close();
	int err = 0;
	for (int i = 0; i < 1000 && !err; i++)
		err = ERRNO_OF((void)moved.send("abc", 1ms));
	CHECK(err == EPIPE);
}

TEST(a_barrier)
{
	on_device d;
	hamlyn::barrier first(d.m, 2);
	hamlyn::seed seed = first.seed(1);
	int at = 0;
	std::exception_ptr failed;
	std::thread other([&] {
		try {
			hamlyn::manager m(d.dev);
			hamlyn::barrier b(m, seed);

			for (int i = 0; i < 100; i++)
				CHECK(b.wait(patience()) == status::ok);
			at = 1;
			CHECK(b.wait(patience()) == status::ok);
			b.leave();
			CHECK(!b.handle());
		} catch (...) {
			failed = std::current_exception();
		}
	});
	for (int i = 0; i < 101; i++) {
		if (first.wait(patience()) != status::ok)
			break;
	}
	int seen = at;
	/* Whoever has left does not come any more. */
	int err = ERRNO_OF((void)first.wait(patience()));
	other.join();
	if (failed)
		std::rethrow_exception(failed);
	CHECK(seen == 1);
	CHECK(err == EPIPE);
	first.leave();
	CHECK(!first.handle());
}

TEST(what_was_sent_has_left)
{
	on_device d;
	hamlyn::tagged_receiver r(d.m);
	auto to = hamlyn::tagged_address::resolve(r.seed());

	CHECK(d.m.drain(patience()) == status::ok);
	CHECK(to.send(d.m, "x", 0, 1) == status::ok);
	CHECK(d.m.drain(patience()) == status::ok);
	CHECK(r.receive(patience()));
}
