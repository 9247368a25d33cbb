// SPDX-License-Identifier: GPL-2.0-only
/* What needs no device: views, time-outs, results, errors, which types can do what. */
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "test.hh"

using namespace std::chrono_literals;
using hamlyn::bytes;
using hamlyn::mutable_bytes;

template <class T>
constexpr bool move_only = std::is_nothrow_move_constructible_v<T> &&
	std::is_nothrow_move_assignable_v<T> && std::is_nothrow_destructible_v<T> &&
	!std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T>;

static_assert(move_only<hamlyn::device>);
static_assert(move_only<hamlyn::area>);
static_assert(move_only<hamlyn::notification_queue>);
static_assert(move_only<hamlyn::slot>);
static_assert(move_only<hamlyn::terminus>);
static_assert(move_only<hamlyn::watch>);
static_assert(move_only<hamlyn::descriptor>);
static_assert(move_only<hamlyn::manager>);
static_assert(move_only<hamlyn::buffer>);
static_assert(move_only<hamlyn::registration>);
static_assert(move_only<hamlyn::stream_sender>);
static_assert(move_only<hamlyn::stream_receiver>);
static_assert(move_only<hamlyn::record>);
static_assert(move_only<hamlyn::listener>);
static_assert(move_only<hamlyn::stream_pair>);

static_assert(std::is_trivially_copyable_v<hamlyn::ticket>);
static_assert(sizeof(hamlyn::ticket) == sizeof(h_ticket));
static_assert(std::is_trivially_copyable_v<hamlyn::seed>);
static_assert(sizeof(hamlyn::seed) == H_SEED_BYTES);
static_assert(std::is_trivially_copyable_v<bytes>);

static_assert(std::is_convertible_v<std::string_view, bytes>);
static_assert(std::is_convertible_v<std::string, bytes>);
static_assert(std::is_convertible_v<const std::vector<int> &, bytes>);
static_assert(std::is_convertible_v<std::array<double, 3>, bytes>);
static_assert(std::is_convertible_v<mutable_bytes, bytes>);
static_assert(!std::is_convertible_v<bytes, mutable_bytes>);
static_assert(std::is_constructible_v<mutable_bytes, std::vector<int> &>);
static_assert(!std::is_constructible_v<mutable_bytes, const std::vector<int> &>);
static_assert(!std::is_constructible_v<mutable_bytes, std::string_view &>);
static_assert(!std::is_constructible_v<bytes, std::vector<std::string> &>,
	      "a string is more than bytes");
static_assert(!std::is_constructible_v<bytes, const char *>, "of what length?");

TEST(views_of_containers)
{
	int numbers[3] = { 1, 2, 3 };
	std::vector<short> shorts(5);
	std::string text = "hello";
	char buffer[7] = {};
	const char literal[] = "abc";

	CHECK(bytes(numbers).size() == sizeof(numbers));
	CHECK(static_cast<const void *>(bytes(numbers).data()) == numbers);
	CHECK(bytes(shorts).size() == 10);
	CHECK(bytes(text).size() == 5);
	CHECK(bytes(std::string_view("hello")).text() == "hello");
	CHECK(bytes("hello").size() == 5);
	CHECK(bytes(literal).size() == 3);
	CHECK(bytes(buffer).size() == 7);
	CHECK(bytes("").empty());
	CHECK(bytes().empty() && !bytes().data());
	CHECK(mutable_bytes(numbers).size() == sizeof(numbers));
	CHECK(mutable_bytes(buffer).size() == 7);
	mutable_bytes{ text }[0] = std::byte{ 'j' };
	CHECK(text == "jello");
	CHECK(bytes(text).subview(1, 3).text() == "ell");
	CHECK(bytes(text).subview(5).empty());
	CHECK(mutable_bytes(text).subview(3).size() == 2);
	CHECK(bytes(text)[1] == std::byte{ 'e' });
	CHECK(bytes(text).end() - bytes(text).begin() == 5);
}

#ifdef __cpp_lib_span
TEST(views_of_spans)
{
	std::array<int, 4> numbers = {};
	std::span<int> span(numbers);

	CHECK(bytes(span).size() == 16);
	CHECK(bytes(std::as_bytes(span)).size() == 16);
	CHECK(mutable_bytes(span).size() == 16);
	CHECK(mutable_bytes(std::as_writable_bytes(span)).size() == 16);
	std::span<const std::byte> back = bytes(span);
	CHECK(back.size() == 16 && static_cast<const void *>(back.data()) == numbers.data());
	std::span<std::byte> writable = mutable_bytes(span);
	CHECK(writable.size() == 16);
	static_assert(!std::is_constructible_v<mutable_bytes, std::span<const int>>);
	static_assert(std::ranges::contiguous_range<bytes>);
	static_assert(std::ranges::view<bytes>);
}
#endif

TEST(time_outs)
{
	using hamlyn::timeout;

	static_assert(hamlyn::nowait.ns() == 0);
	static_assert(hamlyn::forever.ns() < 0);
	static_assert(timeout(1s).ns() == 1000000000);
	static_assert(timeout(0s).ns() == 0);
	static_assert(timeout(-5s).ns() == 0, "a deadline that has passed is not for ever");
	static_assert(timeout(std::chrono::duration<double>(0.25)).ns() == 250000000);
	static_assert(timeout(std::chrono::duration<double, std::nano>(0.1)).ns() == 1);
	static_assert(timeout(std::chrono::duration<int, std::pico>(1500)).ns() == 2);
	static_assert(timeout(std::chrono::hours::max()).ns() == INT64_MAX);
	static_assert(timeout(std::chrono::nanoseconds::max()).ns() == INT64_MAX);
	static_assert(timeout(std::chrono::hours::min()).ns() == 0);
	static_assert(timeout(std::chrono::duration<double>(1e300)).ns() == INT64_MAX);
	CHECK(timeout(std::chrono::duration<double>(std::nan(""))).ns() == 0);
}

TEST(results)
{
	hamlyn::result<std::unique_ptr<int>> some(std::make_unique<int>(5));
	hamlyn::result<std::unique_ptr<int>> none(hamlyn::status::again);

	CHECK(some && some.has_value() && **some == 5);
	CHECK(some.why() == hamlyn::status::ok);
	CHECK(!none && none.why() == hamlyn::status::again);
	std::optional<std::unique_ptr<int>> moved = std::move(some);
	CHECK(moved && **moved == 5);
	try {
		none.value();
		CHECK(!"value() of nothing");
	} catch (const std::bad_optional_access &) {
	}
}

TEST(errors)
{
	hamlyn::error plain(EPIPE, "h_stream_send");
	hamlyn::error told(EINVAL, "h_slot_create", "the slot is round");
	hamlyn::error copy = told;

	CHECK(plain.number() == EPIPE);
	CHECK(plain.code() == std::errc::broken_pipe);
	CHECK(std::string(plain.what()).find("h_stream_send") == 0);
	CHECK(std::string(plain.explanation()).empty());
	CHECK(std::string(copy.what()).find("h_slot_create: the slot is round") == 0);
	CHECK(std::string(copy.explanation()) == "the slot is round");
	static_assert(std::is_nothrow_copy_constructible_v<hamlyn::error>);
	static_assert(std::is_base_of_v<std::system_error, hamlyn::error>);
}

TEST(seeds_and_tickets_are_bytes)
{
	h_ticket raw = { 1, 2, 3, 4, 5, 6, 0 };
	hamlyn::ticket t = raw;
	hamlyn::ticket back = hamlyn::ticket::from_bytes(t.to_bytes());
	std::string text(H_SEED_BYTES, 'x');

	CHECK(back.host == 1 && back.slot == 2 && back.key == 3 && back.base == 4 &&
	      back.length == 5 && back.meta_index == 6);
	CHECK(ERRNO_OF(hamlyn::ticket::from_bytes("nonsense")) == EINVAL);
	CHECK(bytes(hamlyn::seed::from_bytes(text).to_bytes()).text() == text);
	CHECK(bytes(hamlyn::channel_seed().to_bytes()).size() == H_CHANNEL_SEED_BYTES);
	static_assert(!std::is_same_v<decltype(hamlyn::seed().to_bytes()), bytes>);
	static_assert(!std::is_same_v<decltype(hamlyn::channel_seed().to_bytes()), bytes>);
	CHECK(ERRNO_OF(hamlyn::seed::from_bytes("short")) == EINVAL);
}

TEST(descriptors_are_closed)
{
	int fds[2];

	CHECK(!::pipe(fds));
	{
		hamlyn::descriptor read(fds[0]);
		hamlyn::descriptor write(fds[1]);
		hamlyn::descriptor moved(std::move(write));
		char c;

		CHECK(write.get() == -1 && moved.get() == fds[1]);
		moved = hamlyn::descriptor();
		CHECK(::read(fds[0], &c, 1) == 0);
	}
	CHECK(::close(fds[0]) < 0 && errno == EBADF);
}
