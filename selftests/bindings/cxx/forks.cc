// SPDX-License-Identifier: GPL-2.0-only
/* Children destroy what their parent made: it costs neither of them anything. */
#include <cstring>
#include <memory>

#include <sys/wait.h>
#include <unistd.h>

#include "test.hh"

using hamlyn::status;

namespace {

template <class T>
using some = std::unique_ptr<T>;

/* One of each kind, in use. */
struct everything {
	some<hamlyn::device> dev = std::make_unique<hamlyn::device>();
	some<hamlyn::area> area = std::make_unique<hamlyn::area>(*dev, 4096);
	some<hamlyn::notification_queue> nq =
		std::make_unique<hamlyn::notification_queue>(*dev, 16);
	some<hamlyn::slot> slot = std::make_unique<hamlyn::slot>(*area, *nq);
	some<hamlyn::terminus> terminus = std::make_unique<hamlyn::terminus>(*dev);
	some<hamlyn::watch> watch;
	some<hamlyn::manager> m = std::make_unique<hamlyn::manager>(*dev);
	some<hamlyn::buffer> buffer = std::make_unique<hamlyn::buffer>(m->allocate(100));
	std::string own = std::string(100, 'o');
	some<hamlyn::registration> registration =
		std::make_unique<hamlyn::registration>(m->register_memory(own));
	some<hamlyn::stream_receiver> receiver = std::make_unique<hamlyn::stream_receiver>(*m);
	some<hamlyn::stream_sender> sender =
		std::make_unique<hamlyn::stream_sender>(*m, receiver->seed());
	std::optional<hamlyn::record> record;
	some<std::pair<hamlyn::channel, hamlyn::channel>> channels =
		std::make_unique<std::pair<hamlyn::channel, hamlyn::channel>>(
			hamlyn::channel::pair(*m, *m));
	std::optional<hamlyn::message> message;
	some<hamlyn::datagram_receiver> datagrams =
		std::make_unique<hamlyn::datagram_receiver>(*m);
	std::optional<hamlyn::datagram> datagram;
	some<hamlyn::tagged_receiver> tagged = std::make_unique<hamlyn::tagged_receiver>(*m);
	some<hamlyn::group> group = std::make_unique<hamlyn::group>(*m, 100);
	some<hamlyn::gather> gather = std::make_unique<hamlyn::gather>(*m, 1, 8);
	some<hamlyn::gather_member> member =
		std::make_unique<hamlyn::gather_member>(*m, gather->seed(0));
	some<hamlyn::barrier> barrier = std::make_unique<hamlyn::barrier>(*m, 1);
	some<hamlyn::listener> listener = std::make_unique<hamlyn::listener>(
		"@hamlyn-cxx-forks-" + std::to_string(::getpid()));

	everything()
	{
		terminus->bind(0, *area);
		watch = std::make_unique<hamlyn::watch>(*nq, slot->ticket(), 1);
		m->fd();
		receiver->on_ready([] {});
		tagged->on_ready([] {});
		group->on_ready([] {});
		datagrams->on_ready([] {});
		channels->second.on_ready([] {});
		CHECK(sender->send("record", patience()));
		CHECK(sender->flush(patience()) == status::ok);
		record = receiver->receive(patience());
		CHECK(channels->first.send("message", patience()) == status::ok);
		message = channels->second.receive(patience());
		CHECK(address().send(*m, "datagram") == status::ok);
		datagram = datagrams->receive(patience());
		CHECK(record && message && datagram);
	}

	hamlyn::datagram_address address() { return datagrams->address(); }
};

struct step {
	const char *what;
	void (*destroy)(everything &e);
};

/* What is nearest to the device last: whoever does all goes down the list. */
const step steps[] = {
	{ "a held message", [](everything &e) { e.message.reset(); } },
	{ "channels", [](everything &e) { e.channels.reset(); } },
	{ "a held record", [](everything &e) { e.record.reset(); } },
	{ "a stream sender", [](everything &e) { e.sender.reset(); } },
	{ "a stream receiver", [](everything &e) { e.receiver.reset(); } },
	{ "a held datagram", [](everything &e) { e.datagram.reset(); } },
	{ "a datagram receiver", [](everything &e) { e.datagrams.reset(); } },
	{ "a tagged receiver", [](everything &e) { e.tagged.reset(); } },
	{ "a group", [](everything &e) { e.group.reset(); } },
	{ "a gather's member", [](everything &e) { e.member.reset(); } },
	{ "a gather", [](everything &e) { e.gather.reset(); } },
	{ "a barrier", [](everything &e) { e.barrier.reset(); } },
	{ "a listener", [](everything &e) { e.listener.reset(); } },
	{ "registered memory", [](everything &e) { e.registration.reset(); } },
	{ "a buffer", [](everything &e) { e.buffer.reset(); } },
	{ "a manager", [](everything &e) { e.m.reset(); } },
	{ "a watch", [](everything &e) { e.watch.reset(); } },
	{ "a terminus", [](everything &e) { e.terminus.reset(); } },
	{ "a slot", [](everything &e) { e.slot.reset(); } },
	{ "a queue", [](everything &e) { e.nq.reset(); } },
	{ "an area", [](everything &e) { e.area.reset(); } },
	{ "a device", [](everything &e) { e.dev.reset(); } },
};

template <class F>
bool child_does(F f)
{
	int how = -1;
	pid_t pid = ::fork();

	if (!pid) {
		::alarm(static_cast<unsigned int>(patience().count()));
		try {
			f();
		} catch (const std::exception &e) {
			std::fprintf(stderr, "# %s\n", e.what());
			::_exit(1);
		}
		::_exit(0);
	}
	return pid > 0 && ::waitpid(pid, &how, 0) == pid && how == 0;
}

/* That all is still there. */
void use(everything &e)
{
	CHECK(e.message->text() == "message" && e.record->text() == "record");
	CHECK(e.datagram->text() == "datagram");
	e.message.reset();
	e.record.reset();
	e.datagram.reset();
	CHECK(e.channels->first.send("second", patience()) == status::ok);
	auto second = e.channels->second.receive(patience());
	CHECK(second && second->text() == "second");
	CHECK(e.sender->send("second", patience()));
	CHECK(e.sender->flush(patience()) == status::ok);
	auto record = e.receiver->receive(patience());
	CHECK(record && record->text() == "second");
	CHECK(e.address().send(*e.m, "second") == status::ok);
	auto datagram = e.datagrams->receive(patience());
	CHECK(datagram && datagram->text() == "second");
	CHECK(e.group->share().send(*e.m, "part") == status::ok);
	CHECK(e.group->receive(patience()));
	CHECK(e.member->send("12345678", patience()) == status::ok);
	CHECK(e.gather->receive(patience()));
	CHECK(e.barrier->wait(patience()) == status::ok);
	CHECK(e.terminus->send(e.slot->ticket(), "raw"));
	CHECK(e.nq->receive(patience()));
}

} // namespace

TEST(a_child_destroys_one_kind)
{
	everything e;
	std::string wrong;

	for (const step &s : steps)
		if (!child_does([&] { s.destroy(e); }))
			wrong += std::string(" ") + s.what;
	if (!wrong.empty())
		throw std::logic_error("not destroyed:" + wrong);
	use(e);
}

TEST(a_child_destroys_everything)
{
	everything e;

	CHECK(child_does([&] {
		for (const step &s : steps)
			s.destroy(e);
	}));
	use(e);
}

TEST(a_child_has_a_device_of_its_own)
{
	everything e;

	CHECK(child_does([&] {
		everything own;

		*e.tagged = hamlyn::tagged_receiver(*own.m);
		auto to = hamlyn::tagged_address::resolve(e.tagged->seed());
		CHECK(to.send(*own.m, "x", 0, 1) == status::ok);
		CHECK(e.tagged->receive(patience()));
		use(own);
	}));
	use(e);
}
