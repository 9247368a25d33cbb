// SPDX-License-Identifier: MIT
/**
 * @file
 * libhamlyn for C++17 and later, in this one header over the C library.
 *
 * **Objects** are classes that own one C object each and can be moved, not copied.
 * What an object needs (its device, its manager, its area) lives at least as long
 * as the object does, in whatever order they are destroyed: closing a device only
 * says that *this* handle is not used any more. handle() gives the C object, for
 * whatever C function. An object that was moved from, or closed, fails with EBADF;
 * but the inline calls of a terminus and of a notification queue do not look.
 *
 * What cannot be destroyed yet, as another process was stopped in the middle of sending
 * there (ETIMEDOUT, embedded device), stays: close(), leave() and destroy() of the
 * object itself throw, and can be called again. Where it is a destructor, or the last
 * record or datagram, that would have destroyed it, it stays for ever, and so do what
 * it needs and the device: the library may have a thread that uses them.
 *
 * **Errors** are hamlyn::error, a std::system_error, with the device's explanation
 * where it has one. Nothing there yet, or a time-out that is over, is no error but an
 * empty std::optional, or an empty result<>, whose why() tells.
 *
 * **Time-outs** are durations of std::chrono, rounded up to nanoseconds, or
 * hamlyn::nowait and hamlyn::forever. A negative duration (a deadline that has
 * passed) does not wait.
 *
 * **Threads**: as in C, any thread may call anything at any time, except that an
 * object must not be destroyed, moved or assigned to while another thread is inside
 * a call on it. manager::dispatch() is one on each end point with an on_ready().
 *
 * **Callbacks** may do anything, also destroy their own end point, and let go of the
 * manager. What they throw is thrown by manager::dispatch().
 *
 * **fork()**: a child must not use its parent's objects; it may destroy them, which then
 * gives back some memory and does nothing to the device.
 */
#ifndef HAMLYN_HAMLYN_HPP
#define HAMLYN_HAMLYN_HPP

#if __cplusplus < 201703L
#error "hamlyn.hpp needs C++17"
#endif

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <pthread.h>
#include <unistd.h>

#if defined(__has_include) && __cplusplus >= 202002L
#if __has_include(<span>)
#include <span>
#endif
#endif

#include <hamlyn.h>
#include <hamlyn/barrier.h>
#include <hamlyn/channel.h>
#include <hamlyn/datagram.h>
#include <hamlyn/gather.h>
#include <hamlyn/group.h>
#include <hamlyn/manager.h>
#include <hamlyn/publish.h>
#include <hamlyn/rendezvous.h>
#include <hamlyn/server.h>
#include <hamlyn/stream.h>
#include <hamlyn/tagged.h>
#include <hamlyn/work.h>

namespace hamlyn {

// ---- bytes -----------------------------------------------------------------

namespace detail {

template <class C>
using element_of = std::remove_pointer_t<decltype(std::data(std::declval<C &>()))>;

/* Has data() and size(), or is an array, of things that are nothing but bytes. */
template <class C, class = void>
struct is_contiguous : std::false_type {};
template <class C>
struct is_contiguous<C, std::void_t<element_of<C>, decltype(std::size(std::declval<C &>()))>>
	: std::is_trivially_copyable<element_of<C>> {};

/* A buffer, not a string that ends with a 0. */
template <class C>
inline constexpr bool is_literal_v = std::is_array_v<std::remove_reference_t<C>> &&
	std::is_same_v<std::remove_extent_t<std::remove_reference_t<C>>, const char>;

} // namespace detail

class mutable_bytes;

/**
 * A view of bytes that are only read, as std::span<const std::byte> of C++20.
 *
 * Made from any container with data() and size() of trivially copyable elements
 * (std::string_view, std::vector<int>, std::array, std::span), from arrays, and from
 * an address and a length. A string literal counts without its terminating 0; so does
 * any other array of const char that ends with a 0: for all of it say how long it is.
 */
class bytes {
public:
	using value_type = std::byte;
	using const_iterator = const std::byte *;

	constexpr bytes() noexcept = default;
	bytes(const void *data, std::size_t size) noexcept
		: data_(static_cast<const std::byte *>(data)), size_(size)
	{
	}
	template <std::size_t N>
	bytes(const char (&text)[N]) noexcept : bytes(text, text[N - 1] ? N : N - 1)
	{
	}
	template <class C, std::enable_if_t<detail::is_contiguous<const C>::value &&
					    !detail::is_literal_v<const C> &&
					    !std::is_same_v<C, bytes> &&
					    !std::is_same_v<C, mutable_bytes>, int> = 0>
	bytes(const C &c) noexcept
		: bytes(std::data(c), std::size(c) * sizeof(*std::data(c)))
	{
	}
	template <std::size_t N>
	bytes(char (&buffer)[N]) noexcept : bytes(static_cast<const void *>(buffer), N)
	{
	}

	/** The first byte. */
	constexpr const std::byte *data() const noexcept { return data_; }
	/** How many. */
	constexpr std::size_t size() const noexcept { return size_; }
	constexpr bool empty() const noexcept { return !size_; }
	constexpr const std::byte *begin() const noexcept { return data_; }
	constexpr const std::byte *end() const noexcept { return data_ + size_; }
	constexpr const std::byte &operator[](std::size_t i) const noexcept { return data_[i]; }

	/** Those from an offset on, which is at most size(); at most count of them. */
	bytes subview(std::size_t offset,
		      std::size_t count = std::numeric_limits<std::size_t>::max()) const noexcept
	{
		return { data_ + offset, count < size_ - offset ? count : size_ - offset };
	}

	/** The same bytes as text. */
	std::string_view text() const noexcept
	{
		return { reinterpret_cast<const char *>(data_), size_ };
	}

private:
	const std::byte *data_ = nullptr;
	std::size_t size_ = 0;
};

/** A view of bytes that may be written, as std::span<std::byte> of C++20. */
class mutable_bytes {
public:
	using value_type = std::byte;
	using iterator = std::byte *;

	constexpr mutable_bytes() noexcept = default;
	mutable_bytes(void *data, std::size_t size) noexcept
		: data_(static_cast<std::byte *>(data)), size_(size)
	{
	}
	template <class C, std::enable_if_t<detail::is_contiguous<C>::value &&
					    !std::is_const_v<detail::element_of<C>> &&
					    !std::is_same_v<std::remove_cv_t<C>, mutable_bytes>,
					    int> = 0>
	mutable_bytes(C &c) noexcept
		: mutable_bytes(std::data(c), std::size(c) * sizeof(*std::data(c)))
	{
	}
#ifdef __cpp_lib_span
	template <class T, std::size_t N,
		  std::enable_if_t<!std::is_const_v<T> && std::is_trivially_copyable_v<T>, int> = 0>
	mutable_bytes(std::span<T, N> s) noexcept : mutable_bytes(s.data(), s.size_bytes())
	{
	}
	operator std::span<std::byte>() const noexcept { return { data_, size_ }; }
#endif
	operator bytes() const noexcept { return { data_, size_ }; }

	constexpr std::byte *data() const noexcept { return data_; }
	constexpr std::size_t size() const noexcept { return size_; }
	constexpr bool empty() const noexcept { return !size_; }
	constexpr std::byte *begin() const noexcept { return data_; }
	constexpr std::byte *end() const noexcept { return data_ + size_; }
	constexpr std::byte &operator[](std::size_t i) const noexcept { return data_[i]; }

	/** Those from an offset on, which is at most size(); at most count of them. */
	mutable_bytes subview(std::size_t offset,
			      std::size_t count = std::numeric_limits<std::size_t>::max())
		const noexcept
	{
		return { data_ + offset, count < size_ - offset ? count : size_ - offset };
	}

	/** The same bytes as text. */
	std::string_view text() const noexcept { return bytes(*this).text(); }

private:
	std::byte *data_ = nullptr;
	std::size_t size_ = 0;
};

// ---- time-outs -------------------------------------------------------------

/**
 * How long to wait at most: any duration of std::chrono, nowait, or forever.
 *
 * Rounded up; what is negative does not wait; what is too long for 64 bits of
 * nanoseconds (292 years) is as long as they go.
 */
class timeout {
public:
	template <class Rep, class Period>
	constexpr timeout(std::chrono::duration<Rep, Period> d) noexcept : ns_(count(d))
	{
	}
	/** As the C functions have it: negative: for ever. */
	static constexpr timeout from_ns(std::int64_t ns) noexcept { return timeout(ns); }
	constexpr std::int64_t ns() const noexcept { return ns_; }

private:
	explicit constexpr timeout(std::int64_t ns) noexcept : ns_(ns) {}

	template <class Rep, class Period>
	static constexpr std::int64_t count(std::chrono::duration<Rep, Period> d) noexcept
	{
		using duration = std::chrono::duration<Rep, Period>;

		if (!(d > duration::zero()))
			return H_NOWAIT;
		if (static_cast<double>(d.count()) * Period::num / Period::den >= 9.2e9)
			return std::numeric_limits<std::int64_t>::max();
		return std::chrono::ceil<std::chrono::nanoseconds>(d).count();
	}

	std::int64_t ns_;
};

/** Do not wait. */
inline constexpr timeout nowait = timeout::from_ns(H_NOWAIT);
/** Wait as long as it takes. */
inline constexpr timeout forever = timeout::from_ns(H_FOREVER);

// ---- errors and results ----------------------------------------------------

/** What a call failed with: the errno, the call's name, what the device says about it. */
class error : public std::system_error {
public:
	error(int number, const char *call, const std::string &explanation = {})
		: std::system_error(number, std::generic_category(),
				    explanation.empty() ? std::string(call) :
							  call + (": " + explanation)),
		  explanation_(explanation.empty() ? nullptr :
				std::make_shared<const std::string>(explanation))
	{
	}

	/** The errno, not negative; code() compares with std::errc. */
	int number() const noexcept { return code().value(); }

	/** What was wrong and what is allowed, as h_explain() tells it; may be "". */
	const char *explanation() const noexcept
	{
		return explanation_ ? explanation_->c_str() : "";
	}

private:
	/* An exception is copied, which must not throw. */
	std::shared_ptr<const std::string> explanation_;
};

/** Why there is nothing. */
enum class status {
	ok,		/**< there is something: it was done */
	again,		/**< nothing yet: the time is over, or was not to be waited */
	interrupted,	/**< a signal was handled before there was anything */
	end,		/**< nothing will come any more: the other end has closed */
	unanswered,	/**< a request was sent, and given up without a reply */
};

/** A value, or why there is none. */
template <class T>
class [[nodiscard]] result {
public:
	result(T value) : value_(std::move(value)) {}
	result(status why) : why_(why) {}

	/** Is there a value? */
	explicit operator bool() const noexcept { return value_.has_value(); }
	bool has_value() const noexcept { return value_.has_value(); }
	T &operator*() & noexcept { return *value_; }
	const T &operator*() const & noexcept { return *value_; }
	T &&operator*() && noexcept { return *std::move(value_); }
	T *operator->() noexcept { return &*value_; }
	const T *operator->() const noexcept { return &*value_; }
	/** The value; throws std::bad_optional_access if there is none. */
	T &value() & { return value_.value(); }
	T &&value() && { return std::move(value_).value(); }
	/** status::ok if there is a value. */
	status why() const noexcept { return why_; }
	/** The value without the reason. */
	operator std::optional<T>() && { return std::move(value_); }

private:
	std::optional<T> value_;
	status why_ = status::ok;
};

namespace detail {

/* For calls that make, change or destroy an object: the device may tell more. */
[[noreturn]] inline void fail(std::int64_t err, const char *call, h_dev *dev = nullptr)
{
	char text[HAMLYN_EXPLAIN_BYTES] = "";

	if (dev)
		h_explain(dev, text, sizeof(text));
	throw error(static_cast<int>(-err), call, text);
}

/* For calls that make what there could be asked: h_explain() of this thread. */
inline void check_early(std::int64_t ret, const char *call)
{
	char text[HAMLYN_EXPLAIN_BYTES] = "";

	if (ret >= 0)
		return;
	h_explain(nullptr, text, sizeof(text));
	throw error(static_cast<int>(-ret), call, text);
}

inline void check(std::int64_t ret, const char *call, h_dev *dev = nullptr)
{
	if (ret < 0)
		fail(ret, call, dev);
}

/* What is no error, or an exception. */
inline status outcome(std::int64_t ret, const char *call, h_dev *dev = nullptr)
{
	switch (ret) {
	case -EAGAIN:
	case -ETIMEDOUT:
		return status::again;
	case -EINTR:
		return status::interrupted;
	case -ENODATA:
		return status::end;
	default:
		check(ret, call, dev);
		return status::ok;
	}
}

template <class T>
inline T *need(T *p, const char *what)
{
	if (!p)
		throw error(EBADF, what, "it was moved from, or closed");
	return p;
}

/* How often this process was forked since its first device was opened. */
inline unsigned int forks;

inline void watch_forks()
{
	static const int err = ::pthread_atfork(nullptr, nullptr, [] { forks++; });

	check(-err, "pthread_atfork");
}

/* In children of the process that made it nothing that belongs to it is mapped. */
class origin {
public:
	bool here() const noexcept { return forks_ == forks; }

private:
	unsigned int forks_ = forks;
};

using dev_ref = std::shared_ptr<h_dev>;
using area_ref = std::shared_ptr<h_area>;
using nq_ref = std::shared_ptr<h_nq>;
using manager_ref = std::shared_ptr<h_manager>;

inline h_dev *dev_of(const dev_ref &dev) { return dev.get(); }
inline h_dev *dev_of(const manager_ref &m) { return m ? h_manager_dev(m.get()) : nullptr; }

/* Keeps it for ever, for what needs it could not be destroyed; and needs no memory to do so. */
template <class T>
void leak(T &&what) noexcept
{
	alignas(T) std::byte place[sizeof(T)];

	::new (static_cast<void *>(place)) T(std::move(what));
}

/*
 * Owns a C object, and keeps alive what that needs: those are let go afterwards. Destroy
 * returns 0, or an error if the object is still there.
 */
template <class T, class Destroy, class... Keep>
class owner {
public:
	owner() noexcept = default;
	explicit owner(T *p, Keep... keep) noexcept : keep_(std::move(keep)...), p_(p) {}
	owner(owner &&other) noexcept
		: keep_(std::move(other.keep_)), p_(std::exchange(other.p_, nullptr)),
		  origin_(other.origin_)
	{
	}
	owner &operator=(owner &&other) noexcept
	{
		owner old(std::move(*this));

		keep_ = std::move(other.keep_);
		p_ = std::exchange(other.p_, nullptr);
		origin_ = other.origin_;
		return *this;
	}
	~owner()
	{
		if (end())
			leak(std::move(keep_));
	}

	T *get() const noexcept { return p_; }
	void forget() noexcept { p_ = nullptr; }
	/* As the destructor, but if it is still there it stays in here, too. */
	void destroy(const char *call)
	{
		int err = end();

		if (err)
			fail(err, call, dev_of(keep<0>()));
	}
	template <std::size_t I>
	auto &keep() noexcept { return std::get<I>(keep_); }
	template <std::size_t I>
	const auto &keep() const noexcept { return std::get<I>(keep_); }

private:
	int end() noexcept
	{
		int err = p_ && origin_.here() ? Destroy()(p_) : 0;

		if (!err) {
			p_ = nullptr;
			keep_ = {};
		}
		return err;
	}

	std::tuple<Keep...> keep_;
	T *p_ = nullptr;
	origin origin_;
};

/* ---- callbacks: exceptions do not pass through C, dispatch() throws them ---- */

inline std::exception_ptr *&dispatching() noexcept
{
	static thread_local std::exception_ptr *pending;

	return pending;
}

/* Of an end point, at one place as long as that lives, wherever it is moved to. */
class ready_cell {
public:
	void set(std::function<void()> f)
	{
		auto next = f ? std::make_shared<std::function<void()>>(std::move(f)) : nullptr;
		std::lock_guard<std::mutex> guard(lock_);

		f_.swap(next);
	}

	/* The cell, and its end point, may be gone when the function returns. */
	void call() noexcept
	{
		std::shared_ptr<std::function<void()>> f;

		{
			std::lock_guard<std::mutex> guard(lock_);

			f = f_;
		}
		if (!f)
			return;
		try {
			(*f)();
		} catch (...) {
			/* Not in manager::dispatch(): there is nobody to throw it to. */
			if (!dispatching())
				std::terminate();
			if (!*dispatching())
				*dispatching() = std::current_exception();
		}
	}

	template <class T>
	static void ready(T *, void *cell) noexcept { static_cast<ready_cell *>(cell)->call(); }

private:
	std::mutex lock_;
	std::shared_ptr<std::function<void()>> f_;
};

using cell_ref = std::unique_ptr<ready_cell>;

/* Destroys an end point if nobody else has it; if it is still there, throws. */
template <class State>
void end_last(const std::shared_ptr<State> &state, const char *call)
{
	int err = state && state.use_count() == 1 ? state->end() : 0;

	if (err)
		fail(err, call, dev_of(state->manager));
}

/* Set is the C function that takes an end point, a callback and its argument. */
template <class T, class Set>
void set_ready(T *p, cell_ref &cell, Set set, std::function<void()> f)
{
	bool any = static_cast<bool>(f);

	if (!cell) {
		if (!any)
			return;
		cell = std::make_unique<ready_cell>();
	}
	if (!any)
		set(p, nullptr, nullptr);
	cell->set(std::move(f));
	if (any)
		set(p, &ready_cell::ready<T>, cell.get());
}

class spin_lock {
public:
	void lock() noexcept
	{
		while (flag_.test_and_set(std::memory_order_acquire))
			;
	}
	void unlock() noexcept { flag_.clear(std::memory_order_release); }

private:
	std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
};

} // namespace detail

// ---- devices ---------------------------------------------------------------

/** A NIC: see h_open(). */
class device {
public:
	/** Opens by name: "/dev/hamlynN", "shm:NAME[,size=BYTES]...", nullptr: the default. */
	explicit device(const char *name = nullptr)
	{
		h_dev *dev;

		detail::watch_forks();
		detail::check_early(h_open(name, &dev), "h_open");
		dev_.reset(dev, h_close);
	}
	explicit device(const std::string &name) : device(name.c_str()) {}
	device(device &&) noexcept = default;
	device &operator=(device &&) noexcept = default;
	device(const device &) = delete;
	device &operator=(const device &) = delete;

	/** Lets go of it: it is closed when nothing made through it is left. */
	void close() noexcept { dev_.reset(); }
	/** The C object, or nullptr. */
	h_dev *handle() const noexcept { return dev_.get(); }

	/** The name that was opened. */
	std::string name() const { return h_dev_name(need()); }
	/** An embedded device, not a kernel device? */
	bool embedded() const { return h_dev_is_embedded(need()); }

	/** The fabric it is on: of any process, h_dev_fabric(). */
	h_fabric_id fabric() const
	{
		h_fabric_id id;

		h_dev_fabric(need(), &id);
		return id;
	}

	/** Can messages go to a NIC on that fabric, and back? */
	bool reaches(const h_fabric_id &id) const { return h_dev_reaches(need(), &id); }
	/** A descriptor for poll(): see h_dev_fd(); throws EOPNOTSUPP on an embedded device. */
	int fd() const
	{
		int fd = h_dev_fd(need());

		detail::check(fd, "h_dev_fd");
		return fd;
	}
	/** Limits, properties and state. */
	hamlyn_query query() const
	{
		hamlyn_query q = {};

		detail::check(h_query(need(), &q), "h_query", handle());
		return q;
	}
	/** Counters of the whole NIC. */
	hamlyn_stats stats() const
	{
		hamlyn_stats s = {};

		detail::check(h_dev_stats(need(), &s), "h_dev_stats", handle());
		return s;
	}
	/** Up or down: HAMLYN_NIC_UP, HAMLYN_NIC_DOWN. */
	void set_state(hamlyn_nic_state state)
	{
		set({ 0, HAMLYN_NIC_SET_STATE, static_cast<__u32>(state), 0 });
	}
	/** The NIC discards packets unless it is fed that often; zero: no watchdog. */
	void set_watchdog(std::chrono::milliseconds time)
	{
		if (time.count() < 0 || time.count() > std::numeric_limits<__u32>::max())
			throw error(EINVAL, "h_nic_set", "no such time for a watchdog");
		set({ 0, HAMLYN_NIC_SET_WATCHDOG, 0, static_cast<__u32>(time.count()) });
	}
	/** Feeds the watchdog. */
	void feed_watchdog() { set({ 0, HAMLYN_NIC_FEED, 0, 0 }); }
	/** Packets that were rejected at own slots: see h_audit(). */
	std::vector<hamlyn_audit_entry> audit(std::uint64_t &sequence,
					      std::uint32_t most = 256) const
	{
		std::vector<hamlyn_audit_entry> entries(most);
		int n = h_audit(need(), entries.data(), most, &sequence);

		detail::check(n, "h_audit", handle());
		entries.resize(static_cast<std::size_t>(n));
		return entries;
	}

private:
	friend class area;
	friend class manager;
	friend class notification_queue;
	friend class terminus;

	h_dev *need() const { return detail::need(dev_.get(), "device"); }
	const detail::dev_ref &ref() const
	{
		need();
		return dev_;
	}
	void set(const hamlyn_nic_set &s)
	{
		detail::check(h_nic_set(need(), &s), "h_nic_set", handle());
	}

	detail::dev_ref dev_;
};

/** Wired memory that messages go to, or come from. */
class area {
public:
	/** Allocates, zeroed: see h_area_alloc_flags(); flags: HAMLYN_AREA_HUGE or 0. */
	area(const device &dev, std::size_t length, std::uint32_t flags = 0) : dev_(dev.ref())
	{
		h_area *a;

		detail::check(h_area_alloc_flags(dev_.get(), length, flags, &a), "h_area_alloc",
			      dev_.get());
		own(a);
	}
	/** Wires memory that is there: see h_area_add(); it outlives the area. */
	static area add(const device &dev, mutable_bytes memory)
	{
		return area(dev, memory.data(), memory.size(), 0);
	}
	/** The same, only to be sent from. */
	static area add_read_only(const device &dev, bytes memory)
	{
		return area(dev, const_cast<std::byte *>(memory.data()), memory.size(),
			    HAMLYN_AREA_READONLY);
	}
	area(area &&) noexcept = default;
	area &operator=(area &&) noexcept = default;
	area(const area &) = delete;
	area &operator=(const area &) = delete;

	/** Lets go of it: it is removed when no slot or terminus uses it. */
	void close() noexcept
	{
		area_.reset();
		dev_.reset();
	}
	h_area *handle() const noexcept { return area_.get(); }

	/** Where it is in this process. */
	std::byte *data() const { return static_cast<std::byte *>(h_area_addr(need())); }
	/** Bytes, in whole pages if it was allocated. */
	std::size_t size() const { return h_area_length(need()); }
	/** All of it. */
	mutable_bytes memory() const { return { data(), size() }; }
	/** Of which pages it is. */
	std::size_t page_size() const { return h_area_page_size(need()); }

private:
	friend class slot;
	friend class terminus;

	area(const device &dev, void *addr, std::size_t length, std::uint32_t flags)
		: dev_(dev.ref())
	{
		h_area *a;

		detail::check(h_area_add(dev_.get(), addr, length, flags, &a), "h_area_add",
			      dev_.get());
		own(a);
	}
	void own(h_area *a)
	{
		area_.reset(a, [dev = dev_, o = detail::origin()](h_area *p) {
			if (o.here())
				h_area_remove(p);
		});
	}
	h_area *need() const { return detail::need(area_.get(), "area"); }

	detail::dev_ref dev_;
	detail::area_ref area_;
};

/** A notification. */
using notification = hamlyn_nq_entry;

/** A notification queue (H 2.6). */
class notification_queue {
public:
	/** With a power of two entries, of which all but one can be filled. */
	notification_queue(const device &dev, std::uint32_t entries) : dev_(dev.ref())
	{
		h_nq *nq;

		detail::check(h_nq_create(dev_.get(), entries, &nq), "h_nq_create", dev_.get());
		nq_.reset(nq, [d = dev_, o = detail::origin()](h_nq *p) {
			if (o.here())
				h_nq_destroy(p);
		});
	}
	notification_queue(notification_queue &&) noexcept = default;
	notification_queue &operator=(notification_queue &&) noexcept = default;
	notification_queue(const notification_queue &) = delete;
	notification_queue &operator=(const notification_queue &) = delete;

	/** Lets go of it: it is destroyed when no slot or watch uses it. */
	void close() noexcept
	{
		nq_.reset();
		dev_.reset();
	}
	h_nq *handle() const noexcept { return nq_.get(); }

	/**
	 * Takes the next notification, if there is one: h_recv(), inline.
	 * Throws EOVERFLOW where notifications were lost.
	 */
	std::optional<notification> receive()
	{
		notification entry;
		int ret = h_recv(nq_.get(), &entry);

		if (h__likely(ret > 0))
			return entry;
		detail::check(ret, "h_recv");
		return std::nullopt;
	}
	/** Waits for it. */
	result<notification> receive(timeout t)
	{
		notification entry;
		int ret = h_recv_block(need(), &entry, t.ns());

		if (!ret)
			return entry;
		return detail::outcome(ret, "h_recv_block");
	}
	/** Notifications lost so far, modulo 2^32. */
	std::uint32_t lost() const { return h_nq_lost(need()); }

private:
	friend class slot;
	friend class watch;

	h_nq *need() const { return detail::need(nq_.get(), "notification queue"); }

	detail::dev_ref dev_;
	detail::nq_ref nq_;
};

// ---- tickets and seeds -----------------------------------------------------

/** The right to send to a place (H 3.2): a plain value. */
struct ticket : h_ticket {
	ticket() noexcept : h_ticket() {}
	ticket(const h_ticket &t) noexcept : h_ticket(t) {}

	/** Bytes that can travel anywhere. */
	std::array<std::byte, H_TICKET_BYTES> to_bytes() const noexcept
	{
		std::array<std::byte, H_TICKET_BYTES> out;

		h_ticket_export(this, out.data());
		return out;
	}
	/** The ticket they were made from. */
	static ticket from_bytes(bytes in)
	{
		ticket t;

		detail::check(h_ticket_import(in.data(), in.size(), &t), "h_ticket_import");
		return t;
	}
};

/** What the other end of a connection is made from (H 3.3): a plain value. */
struct seed : h_seed {
	seed() noexcept : h_seed() {}
	seed(const h_seed &s) noexcept : h_seed(s) {}

	/** Bytes that can travel anywhere. */
	std::array<std::byte, H_SEED_BYTES> to_bytes() const noexcept
	{
		std::array<std::byte, H_SEED_BYTES> out;

		std::memcpy(out.data(), h_seed::bytes, out.size());
		return out;
	}
	/** The seed they were made from; EINVAL if they are too few or too many. */
	static seed from_bytes(hamlyn::bytes in)
	{
		seed s;

		if (in.size() != H_SEED_BYTES)
			detail::fail(-EINVAL, "seed");
		std::memcpy(s.h_seed::bytes, in.data(), H_SEED_BYTES);
		return s;
	}
};

/** A file descriptor, closed at the end. */
class descriptor {
public:
	descriptor() noexcept = default;
	explicit descriptor(int fd) noexcept : fd_(fd) {}
	descriptor(descriptor &&other) noexcept : fd_(other.release()) {}
	descriptor &operator=(descriptor &&other) noexcept
	{
		if (this != &other) {
			descriptor taken(std::move(other));

			taken.swap(*this);
		}
		return *this;
	}
	~descriptor()
	{
		if (fd_ >= 0)
			::close(fd_);
	}
	/** The descriptor, or -1. */
	int get() const noexcept { return fd_; }
	/** Gives it to the caller to close. */
	int release() noexcept { return std::exchange(fd_, -1); }
	void swap(descriptor &other) noexcept { std::swap(fd_, other.fd_); }

private:
	int fd_ = -1;
};

// ---- slots -----------------------------------------------------------------

/** What a slot is made of beside its area and its queue: see struct h_slot_attr. */
struct slot_options {
	std::uint64_t base = 0;			/**< first byte of the message area */
	std::uint64_t length = 0;		/**< its bytes; 0: up to the end */
	const area *metadata = nullptr;		/**< area of the metadata entries */
	std::uint64_t metadata_base = 0;	/**< where in it entry 0 is */
	std::uint32_t metadata_count = 0;	/**< how many */
	hamlyn_slot_mode mode = HAMLYN_SLOT_NORMAL;
	std::uint32_t flags = 0;		/**< HAMLYN_SLOT_TICKET_ONLY */
	std::optional<std::uint64_t> key = {};	/**< instead of a new one */
};

/** A place that others can send to (H 2.2). */
class slot {
public:
	/** Notifications go to a queue. */
	slot(const area &to, const notification_queue &nq, const slot_options &o = {})
		: slot(to, &nq, o)
	{
	}
	/** There are no notifications. */
	explicit slot(const area &to, const slot_options &o = {}) : slot(to, nullptr, o) {}
	slot(slot &&) noexcept = default;
	slot &operator=(slot &&) noexcept = default;

	/**
	 * Destroys it: nothing can land through it any more. The destructor does the
	 * same and does not tell. Throws ETIMEDOUT as h_slot_destroy(): then it is still
	 * there, and the call is to be repeated.
	 */
	void destroy() { slot_.destroy("h_slot_destroy"); }
	h_slot *handle() const noexcept { return slot_.get(); }

	/** A new key: all tickets given out so far are void. */
	void rekey() { detail::check(h_slot_rekey(need()), "h_slot_rekey", dev()); }
	/** As it appears in notification::slot. */
	std::uint32_t number() const { return h_slot_number(need()); }
	/** What went wrong at it. */
	hamlyn_stats stats() const
	{
		hamlyn_stats s = {};

		detail::check(h_slot_stats(need(), &s), "h_slot_stats", dev());
		return s;
	}
	/** A ticket: see h_slot_ticket(). */
	hamlyn::ticket ticket(std::uint64_t base = 0, std::uint64_t length = 0,
			      std::uint32_t meta_index = 0) const
	{
		hamlyn::ticket t;

		detail::check(h_slot_ticket(need(), base, length, meta_index, &t),
			      "h_slot_ticket");
		return t;
	}
	/** A ticket for words that travel in the notification. */
	hamlyn::ticket fast_ticket() const { return ticket(0, 0, HAMLYN_META_FAST); }
	/** A ticket that is a descriptor: see h_slot_ticket_fd(). */
	descriptor ticket_fd(std::uint64_t base = 0, std::uint64_t length = 0)
	{
		int fd;

		detail::check(h_slot_ticket_fd(need(), base, length, &fd), "h_slot_ticket_fd",
			      dev());
		return descriptor(fd);
	}
	/** A metadata entry, or nullptr. */
	hamlyn_metadata *entry(std::uint32_t index) const { return h_slot_entry(need(), index); }
	/** Lets a sender use an entry of a paranoid slot: see h_slot_entry_grant(). */
	hamlyn::ticket grant(std::uint32_t index, std::uint64_t base = 0, std::uint64_t length = 0)
	{
		hamlyn::ticket t;

		detail::check(h_slot_entry_grant(need(), index, base, length, &t),
			      "h_slot_entry_grant");
		return t;
	}
	/** Lets the next message in, in paranoid one-shot mode. */
	void arm(std::uint32_t index)
	{
		detail::check(h_slot_entry_arm(need(), index), "h_slot_entry_arm");
	}
	/** Takes an entry back from its sender. */
	void revoke(std::uint32_t index)
	{
		detail::check(h_slot_entry_revoke(need(), index), "h_slot_entry_revoke");
	}

private:
	struct destroyer {
		int operator()(h_slot *s) const noexcept { return h_slot_destroy(s); }
	};

	slot(const area &to, const notification_queue *nq, const slot_options &o)
	{
		h_dev *dev = to.dev_.get();
		h_slot_attr attr = {};
		h_slot *s;

		attr.area = to.need();
		attr.base = o.base;
		attr.length = o.length;
		attr.meta_area = o.metadata ? o.metadata->need() : nullptr;
		attr.meta_base = o.metadata_base;
		attr.meta_count = o.metadata_count;
		attr.mode = o.mode;
		attr.flags = o.flags | (o.key ? HAMLYN_SLOT_KEY_GIVEN : 0);
		attr.nq = nq ? nq->need() : nullptr;
		attr.key = o.key.value_or(0);
		detail::check(h_slot_create(dev, &attr, &s), "h_slot_create", dev);
		slot_ = owned(s, to.dev_, to.area_,
			      o.metadata ? o.metadata->area_ : detail::area_ref(),
			      nq ? nq->nq_ : detail::nq_ref());
	}
	h_slot *need() const { return detail::need(slot_.get(), "slot"); }
	h_dev *dev() const { return slot_.template keep<0>().get(); }

	using owned = detail::owner<h_slot, destroyer, detail::dev_ref, detail::area_ref,
				    detail::area_ref, detail::nq_ref>;
	owned slot_;
};

// ---- termini ---------------------------------------------------------------

/** A message on its way: what done() and wait() are asked about. */
using message_handle = std::int64_t;

/** Sends through a terminus that somebody else owns: see manager::terminus(). */
class terminus_view {
public:
	explicit terminus_view(h_terminus *t) noexcept : t_(t) {}

	h_terminus *handle() const noexcept { return t_; }

	/**
	 * Sends a message: h_send_msg(), inline. Empty while the work queue is full.
	 * What is longer than direct I/O carries must be in a bound area, and stay as
	 * it is until done().
	 */
	std::optional<message_handle> send(const h_ticket &to, bytes data, bytes metadata = {})
	{
		return handle_of(h_send_msg(t_, &to, data.data(), data.size(), metadata.data(),
					    metadata.size()), "h_send_msg");
	}
	/** Sends a word that travels in the notification: h_send_word(), inline. */
	std::optional<message_handle> send_word(const h_ticket &to, std::uint64_t word)
	{
		return handle_of(h_send_word(t_, &to, word), "h_send_word");
	}
	/** Sends in all ways there are: h_send(). */
	std::optional<message_handle> send(const h_msg &message)
	{
		return handle_of(h_send(t_, &message), "h_send");
	}
	/** May the message's buffer be reused? Throws what the NIC refused it with. */
	bool done(message_handle handle)
	{
		int ret = h_send_done(t_, handle);

		if (h__unlikely(ret < 0))
			detail::fail(ret, "h_send_done");
		return ret;
	}
	/** Waits for that; false if the time was over. */
	bool wait(message_handle handle, timeout t = forever)
	{
		int ret = h_send_wait(t_, handle, t.ns());

		if (ret == -ETIMEDOUT || ret == -EAGAIN)
			return false;
		detail::check(ret, "h_send_wait");
		return true;
	}
	/** Much with one doorbell: see h_cork(). */
	void cork() noexcept { h_cork(t_); }
	void uncork() { detail::check(h_uncork(t_), "h_uncork"); }
	/** Counters. */
	hamlyn_stats stats() const
	{
		hamlyn_stats s = {};

		detail::check(h_terminus_stats(detail::need(t_, "terminus"), &s),
			      "h_terminus_stats");
		return s;
	}

protected:
	static std::optional<message_handle> handle_of(std::int64_t ret, const char *call)
	{
		if (h__likely(ret >= 0))
			return ret;
		if (ret != -EAGAIN)
			detail::fail(ret, call);
		return std::nullopt;
	}

	h_terminus *t_;
};

/** Properties of a terminus; zero means default. */
using terminus_options = h_terminus_attr;

/** Where messages leave (H 2.3). */
class terminus : public terminus_view {
public:
	explicit terminus(const device &dev, const terminus_options &options = {})
		: terminus_view(nullptr), areas_(std::make_unique<areas>())
	{
		detail::check(h_terminus_create(dev.ref().get(), &options, &t_),
			      "h_terminus_create", dev.handle());
		terminus_ = owned(t_, dev.ref());
	}
	terminus(terminus &&other) noexcept
		: terminus_view(std::exchange(other.t_, nullptr)),
		  areas_(std::move(other.areas_)), terminus_(std::move(other.terminus_))
	{
	}
	terminus &operator=(terminus &&other) noexcept
	{
		if (this == &other)
			return *this;
		terminus_ = std::move(other.terminus_);
		areas_ = std::move(other.areas_);
		t_ = std::exchange(other.t_, nullptr);
		return *this;
	}

	/** Lets it send from an area: see h_terminus_bind(). */
	void bind(std::uint32_t tag, const area &from, std::uint64_t base = 0,
		  std::uint64_t length = 0)
	{
		h_terminus *t = need();
		std::lock_guard<std::mutex> lock(areas_->mutex);
		auto place = areas_->by_tag.try_emplace(tag);
		int ret = h_terminus_bind(t, tag, from.need(), base, length);

		if (ret && place.second)
			areas_->by_tag.erase(place.first);
		detail::check(ret, "h_terminus_bind", dev());
		place.first->second = from.area_;
	}
	void unbind(std::uint32_t tag)
	{
		h_terminus *t = need();
		std::lock_guard<std::mutex> lock(areas_->mutex);

		detail::check(h_terminus_bind(t, tag, nullptr, 0, 0), "h_terminus_bind", dev());
		areas_->by_tag.erase(tag);
	}
	/** A ticket that came as a descriptor: for this terminus only. */
	ticket import(int fd)
	{
		ticket t;

		detail::check(h_terminus_import(need(), fd, &t), "h_terminus_import", dev());
		return t;
	}
	/** Forgets it. */
	void drop(const h_ticket &imported)
	{
		detail::check(h_terminus_drop(need(), &imported), "h_terminus_drop", dev());
	}

private:
	struct destroyer {
		int operator()(h_terminus *t) const noexcept { return h_terminus_destroy(t); }
	};
	/* Any thread may bind; what is bound lives as long as it is. */
	struct areas {
		std::mutex mutex;
		std::map<std::uint32_t, detail::area_ref> by_tag;
	};
	using owned = detail::owner<h_terminus, destroyer, detail::dev_ref>;

	h_terminus *need() const { return detail::need(t_, "terminus"); }
	h_dev *dev() const { return terminus_.template keep<0>().get(); }

	/* The terminus goes first. */
	std::unique_ptr<areas> areas_;
	owned terminus_;
};

// ---- watches ---------------------------------------------------------------

/** Is told when a slot is gone (H 6.3): by a notification with its cookie in data. */
class watch {
public:
	watch(const notification_queue &nq, const h_ticket &t, std::uint64_t cookie)
	{
		h_dev *dev = device_of(nq);
		struct ::h_watch *w;

		detail::check(::h_watch(dev, &t, nq.need(), cookie, &w), "h_watch", dev);
		watch_ = owned(w, nq.dev_, nq.nq_);
	}
	/** By the descriptor of a ticket. */
	watch(const notification_queue &nq, int fd, std::uint64_t cookie)
	{
		h_dev *dev = device_of(nq);
		struct ::h_watch *w;

		detail::check(h_watch_fd(dev, fd, nq.need(), cookie, &w), "h_watch_fd", dev);
		watch_ = owned(w, nq.dev_, nq.nq_);
	}

	/** Ends it, as the destructor does; throws ETIMEDOUT if it stays: call again then. */
	void close() { watch_.destroy("h_unwatch"); }
	struct ::h_watch *handle() const noexcept { return watch_.get(); }

private:
	struct destroyer {
		int operator()(struct ::h_watch *w) const noexcept { return h_unwatch(w); }
	};
	using owned = detail::owner<struct ::h_watch, destroyer, detail::dev_ref, detail::nq_ref>;

	static h_dev *device_of(const notification_queue &nq)
	{
		nq.need();
		return nq.dev_.get();
	}

	owned watch_;
};

// ---- managers --------------------------------------------------------------

/** Memory of a manager, that can be sent from without copying. */
class buffer {
public:
	buffer(buffer &&) noexcept = default;
	buffer &operator=(buffer &&) noexcept = default;

	std::byte *data() const noexcept { return memory_.get(); }
	std::size_t size() const noexcept { return memory_.get() ? size_ : 0; }
	mutable_bytes memory() const noexcept { return { data(), size() }; }

private:
	friend class manager;

	struct freer {
		std::shared_ptr<h_manager> manager;
		detail::origin origin = {};
		void operator()(std::byte *p) const noexcept
		{
			if (origin.here())
				h_manager_free(manager.get(), p);
		}
	};

	buffer(const detail::manager_ref &m, void *p, std::size_t size)
		: memory_(static_cast<std::byte *>(p), freer{ m }), size_(size)
	{
	}

	std::unique_ptr<std::byte, freer> memory_;
	std::size_t size_;
};

/** Memory of one's own, as long as it may be sent from without copying. */
class registration {
public:
	registration(registration &&) noexcept = default;
	registration &operator=(registration &&) noexcept = default;

	/** Ends it, as the destructor does. */
	void close() noexcept { memory_.reset(); }

private:
	friend class manager;

	struct ender {
		std::shared_ptr<h_manager> manager;
		detail::origin origin = {};
		void operator()(void *p) const noexcept
		{
			if (origin.here())
				h_manager_unregister(manager.get(), p);
		}
	};

	registration(const detail::manager_ref &m, void *p) : memory_(p, ender{ m }) {}

	std::unique_ptr<void, ender> memory_;
};

/** Properties of a manager; zero means default. */
using manager_options = h_manager_attr;

/** What end points are made on (H 3.3). */
class manager {
public:
	explicit manager(const device &dev, const manager_options &options = {})
	{
		h_manager *m;

		detail::check(h_manager_create(dev.ref().get(), &options, &m), "h_manager_create",
			      dev.handle());
		manager_.reset(m, [d = dev.ref(), o = detail::origin()](h_manager *p) {
			/* It has end points, and may have a thread. */
			if (o.here() && h_manager_destroy(p))
				detail::leak(detail::dev_ref(d));
		});
	}
	manager(manager &&) noexcept = default;
	manager &operator=(manager &&) noexcept = default;
	manager(const manager &) = delete;
	manager &operator=(const manager &) = delete;

	/** Lets go of it: it is destroyed when it has no end points, and its memory is freed. */
	void close() noexcept { manager_.reset(); }
	h_manager *handle() const noexcept { return manager_.get(); }

	/** Its send terminus, for raw sends besides. */
	terminus_view terminus() const { return terminus_view(h_manager_terminus(need())); }
	/** Looks for arrivals and gives them to their end points; how many there were. */
	int poll() { return h_manager_poll(need()); }

	/** Waits until everything that was sent has left. */
	status drain(timeout t = forever)
	{
		return detail::outcome(h_manager_drain(need(), t.ns()), "h_manager_drain");
	}

	/** Memory that can be sent from without copying; not zeroed. */
	buffer allocate(std::size_t length)
	{
		void *p;

		detail::check(h_manager_alloc(need(), length, &p), "h_manager_alloc", dev());
		return buffer(manager_, p, length);
	}
	/** Lets memory of one's own be sent from without copying. */
	registration register_memory(bytes memory)
	{
		void *p = const_cast<std::byte *>(memory.data());

		detail::check(h_manager_register(need(), p, memory.size()), "h_manager_register",
			      dev());
		return registration(manager_, p);
	}

	/** A descriptor for event loops: readable while dispatch() has something to do. */
	int fd()
	{
		int fd = h_manager_fd(need());

		detail::check(fd, "h_manager_fd");
		return fd;
	}
	/** Counters, and what it has. */
	struct h_manager_counters stats() const
	{
		struct h_manager_counters s = {};

		detail::check(::h_manager_stats(need(), &s), "h_manager_stats");
		return s;
	}
	/**
	 * Calls what on_ready() of the end points has set; how many were called.
	 * Throws the first exception that one of them has thrown, after all were called.
	 */
	int dispatch()
	{
		/* A callback may let go of the manager, too. */
		const detail::manager_ref keep = ref();
		std::exception_ptr first;
		std::exception_ptr *outer = std::exchange(detail::dispatching(), &first);
		int n = 0;

		try {
			n = h_manager_dispatch(keep.get());
		} catch (...) {
			first = std::current_exception();
		}
		detail::dispatching() = outer;
		if (first)
			std::rethrow_exception(first);
		return n;
	}
	/** Sleeps until dispatch() has something to do, or until kick(). */
	status wait(timeout t = forever)
	{
		return detail::outcome(h_manager_wait(need(), t.ns()), "h_manager_wait");
	}
	/** Ends a wait(), or the next one. From any thread, and from signal handlers. */
	void kick()
	{
		h_manager_kick(need());
	}

private:
	friend class barrier;
	friend class channel;
	friend class datagram_receiver;
	friend class gather;
	friend class gather_member;
	friend class group;
	friend class listener;
	friend class stream_receiver;
	friend class stream_sender;
	friend class tagged_receiver;
	friend struct datagram_address;
	friend struct share;
	friend struct stream_pair;
	friend struct tagged_address;

	h_manager *need() const { return detail::need(manager_.get(), "manager"); }
	h_dev *dev() const { return h_manager_dev(need()); }
	const detail::manager_ref &ref() const
	{
		need();
		return manager_;
	}

	detail::manager_ref manager_;
};

// ---- streams ---------------------------------------------------------------

/** Properties of a stream; zero means default. */
using stream_options = h_stream_attr;

/** A piece of a stream, where it was received; given back at the end. */
class record {
public:
	record(record &&other) noexcept
		: state_(std::move(other.state_)), record_(other.record_)
	{
	}
	record &operator=(record &&other) noexcept
	{
		if (this != &other) {
			release();
			state_ = std::move(other.state_);
			record_ = other.record_;
		}
		return *this;
	}
	~record() { release(); }

	const std::byte *data() const noexcept { return view().data(); }
	std::size_t size() const noexcept { return view().size(); }
	/** All of it; nothing any more once it was released. */
	bytes view() const noexcept
	{
		return state_ ? bytes(record_.data, record_.length) : bytes();
	}
	std::string_view text() const noexcept { return view().text(); }

	/** Gives it back before the end. The sender goes on when those before it are, too. */
	void release() noexcept
	{
		if (auto s = std::move(state_); s && s->origin.here())
			s->release(record_.number);
	}

private:
	friend class stream_receiver;

	/* The receiver, as long as a record of it is held; and which of them were released. */
	class state {
	public:
		state(h_stream_receiver *r, detail::manager_ref m) noexcept
			: receiver(r), manager(std::move(m))
		{
		}
		state(const state &) = delete;
		state &operator=(const state &) = delete;
		~state()
		{
			if (end())
				detail::leak(std::move(manager));
		}

		/* 0 when it is destroyed. */
		int end() noexcept
		{
			int err = receiver && origin.here() ?
					  h_stream_receiver_destroy(receiver) : 0;

			if (!err)
				receiver = nullptr;
			return err;
		}

		/*
		 * To be able to hold one more, before it is received: a record that cannot
		 * be held could only be given back with all before it, which are held.
		 */
		void make_room()
		{
			std::lock_guard<detail::spin_lock> guard(lock_);

			if (held_.size() == held_.capacity())
				held_.reserve(2 * held_.size() + 4);
		}

		bool holds_any() noexcept
		{
			std::lock_guard<detail::spin_lock> guard(lock_);

			return !held_.empty();
		}

		void hold(const h_record &r) noexcept
		{
			std::lock_guard<detail::spin_lock> guard(lock_);

			held_.push_back({ r, false });
		}

		/* In C a record is released with all before it: here not until those are. */
		void release(std::uint32_t number) noexcept
		{
			std::optional<h_record> last;

			{
				std::lock_guard<detail::spin_lock> guard(lock_);

				for (auto &h : held_) {
					if (h.record.number == number) {
						h.released = true;
						break;
					}
				}
				auto first = held_.begin();
				for (; first != held_.end() && first->released; ++first)
					last = first->record;
				held_.erase(held_.begin(), first);
			}
			if (last)
				h_stream_release(receiver, &*last);
		}

		h_stream_receiver *receiver;
		detail::manager_ref manager;
		detail::cell_ref ready;
		const detail::origin origin = {};

	private:
		struct held {
			h_record record;
			bool released;
		};

		detail::spin_lock lock_;
		std::vector<held> held_;
	};

	record(std::shared_ptr<state> s, const h_record &r) : state_(std::move(s)), record_(r) {}

	std::shared_ptr<state> state_;
	h_record record_;
};

/** The receiving end of a stream. One thread at a time receives from it. */
class stream_receiver {
public:
	explicit stream_receiver(const manager &m, const stream_options &options = {})
	{
		h_stream_receiver *r;

		detail::check(h_stream_receiver_create(m.ref().get(), &options, &r),
			      "h_stream_receiver_create", m.dev());
		*this = stream_receiver(r, m.ref());
	}
	stream_receiver(stream_receiver &&) noexcept = default;
	stream_receiver &operator=(stream_receiver &&other) noexcept
	{
		if (this != &other) {
			drop();
			state_ = std::move(other.state_);
		}
		return *this;
	}
	~stream_receiver() { drop(); }

	/**
	 * Lets go of it, as the destructor does: it is destroyed when no record is held.
	 * Throws ETIMEDOUT if it stays: to be called again.
	 */
	void close()
	{
		call_nobody();
		detail::end_last(state_, "h_stream_receiver_destroy");
		state_.reset();
	}
	h_stream_receiver *handle() const noexcept { return state_ ? state_->receiver : nullptr; }

	/** A seed for the sender: for one, once. */
	hamlyn::seed seed() const
	{
		hamlyn::seed s;

		h_stream_receiver_seed(need(), &s);
		return s;
	}
	/**
	 * The next piece, without copying; empty, with status::end, at the end.
	 * Throws ECONNRESET if the sender is gone without having closed it.
	 */
	result<record> receive(timeout t = forever)
	{
		h_stream_receiver *from = need();
		h_record r;
		int ret;

		state_->make_room();
		ret = h_stream_receive(from, &r, t.ns());
		if (!ret)
			return take(r);
		return detail::outcome(ret, "h_stream_receive");
	}
	/**
	 * Receives by copying: how many bytes, at least 1; empty as receive(). Throws EBUSY
	 * while a record is held, which it would give back, and EINVAL without room.
	 */
	result<std::size_t> read(mutable_bytes to, timeout t = forever)
	{
		detail::check(to.empty() ? -EINVAL : 0, "h_stream_receive_copy");
		need();
		detail::check(state_->holds_any() ? -EBUSY : 0, "h_stream_receive_copy");
		ssize_t ret = h_stream_receive_copy(need(), to.data(), to.size(), t.ns());

		if (ret > 0)
			return static_cast<std::size_t>(ret);
		return detail::outcome(ret, "h_stream_receive_copy");
	}
	/** Has manager::dispatch() call a function while there is something; {}: none. */
	void on_ready(std::function<void()> f)
	{
		detail::set_ready(need(), state_->ready, h_stream_receiver_on_ready, std::move(f));
	}

private:
	friend struct stream_pair;

	/* Takes what it is given, also if it throws. */
	stream_receiver(h_stream_receiver *r, detail::manager_ref m)
	{
		try {
			state_ = std::make_shared<record::state>(r, std::move(m));
		} catch (...) {
			h_stream_receiver_destroy(r);
			throw;
		}
	}
	h_stream_receiver *need() const { return detail::need(handle(), "stream receiver"); }
	void call_nobody() noexcept
	{
		if (state_ && state_->origin.here())
			h_stream_receiver_on_ready(state_->receiver, nullptr, nullptr);
	}
	void drop() noexcept
	{
		call_nobody();
		state_.reset();
	}
	record take(const h_record &r)
	{
		state_->hold(r);
		return record(state_, r);
	}

	std::shared_ptr<record::state> state_;
};

/**
 * The sending end of a stream: one for each seed. A second one throws EALREADY.
 *
 * The destructor does not wait: unless all has arrived, the receiver finds a broken
 * stream. Call close() to end it well.
 */
class stream_sender {
public:
	stream_sender(const manager &m, const h_seed &s)
	{
		h_stream_sender *p;

		detail::check(h_stream_sender_create(m.ref().get(), &s, &p),
			      "h_stream_sender_create", m.dev());
		sender_ = owned(p, m.ref(), nullptr, nullptr);
	}
	stream_sender(stream_sender &&) noexcept = default;
	stream_sender &operator=(stream_sender &&) noexcept = default;

	/**
	 * Ends the stream and waits until everything has arrived. If that is not known when
	 * the time is over, to be called again. Throws EPIPE if the receiver is gone.
	 */
	status shutdown(timeout t = forever)
	{
		return detail::outcome(h_stream_sender_shutdown(need(), t.ns()),
				       "h_stream_sender_shutdown");
	}
	/**
	 * Ends the stream and waits until everything has arrived. Whatever it returns or
	 * throws, this end is gone. Throws EPIPE if the receiver is gone.
	 */
	status close(timeout t = forever)
	{
		h_stream_sender *s = need();
		std::int64_t ret;

		sender_.forget();
		ret = h_stream_sender_close(s, t.ns());
		sender_ = owned();
		return detail::outcome(ret, "h_stream_sender_close");
	}
	h_stream_sender *handle() const noexcept { return sender_.get(); }

	/**
	 * Sends: how many bytes were taken, all of them if the time was enough. Little data
	 * may stay behind until flush(). Throws EPIPE if the receiver is gone.
	 */
	result<std::size_t> send(bytes data, timeout t = forever)
	{
		ssize_t ret = h_stream_send(need(), data.data(), data.size(), t.ns());

		if (ret >= 0)
			return static_cast<std::size_t>(ret);
		return detail::outcome(ret, "h_stream_send");
	}
	/** Forces out what was collected. */
	status flush(timeout t = forever)
	{
		return detail::outcome(h_stream_flush(need(), t.ns()), "h_stream_flush");
	}
	/** Has manager::dispatch() call a function when sending can go on; {}: none. */
	void on_ready(std::function<void()> f)
	{
		detail::set_ready(need(), sender_.template keep<1>(), h_stream_sender_on_ready,
				  std::move(f));
	}

private:
	friend struct stream_pair;

	struct closer {
		int operator()(h_stream_sender *s) const noexcept
		{
			h_stream_sender_close(s, H_NOWAIT);
			return 0;
		}
	};
	using owned = detail::owner<h_stream_sender, closer, detail::manager_ref, detail::cell_ref,
				    std::shared_ptr<void>>;

	stream_sender(h_stream_sender *p, detail::manager_ref m,
		      std::shared_ptr<void> other) noexcept
		: sender_(p, std::move(m), nullptr, std::move(other))
	{
	}
	h_stream_sender *need() const { return detail::need(sender_.get(), "stream sender"); }

	owned sender_;
};

// ---- rendezvous ------------------------------------------------------------

/** Who is at the other end, as the kernel says. */
using peer = h_peer;

/** What a client asks for; what is 0, or empty, means default. */
struct connect_options {
	std::uint32_t flags = 0;	/**< H_CONNECT_TICKETS, H_CONNECT_WAIT */
	std::vector<uid_t> users = {};	/**< whose server is good enough; empty: anybody's */
};

/** Both directions of a connection. */
struct stream_pair {
	stream_receiver receiver;
	stream_sender sender;
	hamlyn::peer peer;

	/** Connects to a listener's path; empty when the time is over: see h_connect(). */
	static result<stream_pair> connect(const manager &m, const std::string &path,
					   timeout t = forever, const connect_options &options = {},
					   const stream_options &stream = {})
	{
		h_connect_attr attr = {};
		h_stream_pair pair;
		int ret;

		attr.flags = options.flags;
		attr.buffers = stream.buffers;
		attr.buffer_size = stream.buffer_size;
		attr.max_buffer_size = stream.max_buffer_size;
		attr.uids = options.users.empty() ? nullptr : options.users.data();
		attr.uid_count = static_cast<std::uint32_t>(options.users.size());
		ret = h_connect(m.ref().get(), path.c_str(), &attr, &pair, t.ns());
		if (ret)
			return detail::outcome(ret, "h_connect", m.dev());
		return own(pair, m.ref());
	}

private:
	friend class listener;

	static stream_pair own(const h_stream_pair &pair, const detail::manager_ref &m)
	{
		/* The sender goes first. */
		std::unique_ptr<h_stream_sender, stream_sender::closer> sender(pair.sender);
		stream_receiver receiver(pair.receiver, m);
		std::shared_ptr<void> other = receiver.state_;

		return { std::move(receiver), stream_sender(sender.release(), m, std::move(other)),
			 pair.peer };
	}
};

// ---- channels --------------------------------------------------------------

/** One end of a channel; what is 0, or empty, means default: see h_channel_attr. */
struct channel_options {
	std::uint64_t max_message = 0;	/**< longest message that this end takes */
	connect_options connect = {};	/**< for channel::connect() */
	stream_options stream = {};	/**< of what this end receives */
};

namespace detail {

/* There is a function of that name as well. */
using c_channel_seed = struct ::h_channel_seed;

} // namespace detail

/** What the other end of a channel has to know: a plain value. */
struct channel_seed : detail::c_channel_seed {
	channel_seed() noexcept : detail::c_channel_seed() {}
	channel_seed(const detail::c_channel_seed &s) noexcept : detail::c_channel_seed(s) {}

	/** Bytes that can travel anywhere. */
	std::array<std::byte, H_CHANNEL_SEED_BYTES> to_bytes() const noexcept
	{
		std::array<std::byte, H_CHANNEL_SEED_BYTES> out;

		std::memcpy(out.data(), detail::c_channel_seed::bytes, out.size());
		return out;
	}
	/** The seed they were made from; EINVAL if they are too few or too many. */
	static channel_seed from_bytes(hamlyn::bytes in)
	{
		channel_seed s;

		if (in.size() != H_CHANNEL_SEED_BYTES)
			detail::fail(-EINVAL, "channel_seed");
		std::memcpy(s.detail::c_channel_seed::bytes, in.data(), H_CHANNEL_SEED_BYTES);
		return s;
	}
};

/** A message that was received, where it is; given back at the end, in any order. */
class message {
public:
	message(message &&other) noexcept
		: state_(std::move(other.state_)), message_(other.message_)
	{
	}
	message &operator=(message &&other) noexcept
	{
		if (this != &other) {
			release();
			state_ = std::move(other.state_);
			message_ = other.message_;
		}
		return *this;
	}
	~message() { release(); }

	const std::byte *data() const noexcept { return view().data(); }
	std::size_t size() const noexcept { return view().size(); }
	bool empty() const noexcept { return !size(); }
	/** All of it; nothing any more once it was released. */
	bytes view() const noexcept
	{
		return state_ ? bytes(message_.data, message_.length) : bytes();
	}
	std::string_view text() const noexcept { return view().text(); }
	/** Does it want a reply, by channel::reply()? */
	bool is_request() const noexcept { return state_ && h_channel_is_request(&message_); }

	/** Gives it back before the end. */
	void release() noexcept
	{
		if (auto s = std::move(state_); s && s->origin.here())
			h_channel_release(s->channel, &message_);
	}

private:
	friend class channel;
	friend class loan;

	/* The channel, as long as a message of it is held. */
	struct state {
		state(h_channel *c, detail::manager_ref m) noexcept
			: channel(c), manager(std::move(m))
		{
		}
		state(const state &) = delete;
		state &operator=(const state &) = delete;
		~state()
		{
			if (origin.here())
				h_channel_close(channel, H_NOWAIT);
		}

		h_channel *channel;
		detail::manager_ref manager;
		detail::cell_ref ready;
		const detail::origin origin = {};
	};

	message(std::shared_ptr<state> s, const h_message &m) noexcept
		: state_(std::move(s)), message_(m)
	{
	}

	std::shared_ptr<state> state_;
	h_message message_;
};

/** Memory in which a message is built, see channel::reserve(); abandoned at the end. */
class loan {
public:
	loan(loan &&other) noexcept : state_(std::move(other.state_)), loan_(other.loan_) {}
	loan &operator=(loan &&other) noexcept
	{
		if (this != &other) {
			abandon();
			state_ = std::move(other.state_);
			loan_ = other.loan_;
		}
		return *this;
	}
	~loan() { abandon(); }

	std::byte *data() const noexcept { return view().data(); }
	std::size_t size() const noexcept { return view().size(); }
	/** All of it; nothing any more once it was committed or abandoned. */
	mutable_bytes view() const noexcept
	{
		return state_ ? mutable_bytes(loan_.data, loan_.length) : mutable_bytes();
	}
	/**
	 * Sends its first bytes. With status::ok it is empty, else it is as it was: so it is when
	 * EPIPE is thrown, as the other end is gone.
	 */
	[[nodiscard]] status commit(std::size_t length, timeout t = forever)
	{
		h_channel *c = detail::need(state_ ? state_->channel : nullptr, "loan");
		status s = detail::outcome(h_channel_commit(c, &loan_, length, t.ns()),
					   "h_channel_commit",
					   h_manager_dev(state_->manager.get()));

		if (s == status::ok)
			state_.reset();
		return s;
	}
	/** Sends all of it. */
	[[nodiscard]] status commit(timeout t = forever) { return commit(size(), t); }
	/** Gives it back before the end. */
	void abandon() noexcept
	{
		if (auto s = std::move(state_); s && s->origin.here())
			h_channel_abandon(s->channel, &loan_);
	}

private:
	friend class channel;

	loan(std::shared_ptr<message::state> s, const h_loan &l) noexcept
		: state_(std::move(s)), loan_(l)
	{
	}

	std::shared_ptr<message::state> state_;
	h_loan loan_;
};

/**
 * One end of a channel: messages both ways.
 *
 * The destructor does not wait: unless all has arrived, the other end finds a broken
 * channel. Call close() to end it well.
 */
class channel {
public:
	/** By itself: tell the other end its seed(), and it the other's by join(). */
	explicit channel(const manager &m, const channel_options &options = {})
	{
		const h_channel_attr attr = attr_of(options);
		h_channel *c;

		detail::check(h_channel_create(m.ref().get(), &attr, &c), "h_channel_create",
			      m.dev());
		*this = channel(c, m.ref());
	}
	/** Connects to a listener's path; empty when the time is over: see h_connect(). */
	static result<channel> connect(const manager &m, const std::string &path,
				       timeout t = forever, const channel_options &options = {})
	{
		const h_channel_attr attr = attr_of(options);
		h_channel *c;
		int ret = h_channel_connect(m.ref().get(), path.c_str(), &attr, &c, t.ns());

		if (ret)
			return detail::outcome(ret, "h_channel_connect", m.dev());
		return channel(c, m.ref());
	}
	/** The same with a device and a manager of its own, which end with it. */
	static result<channel> dial(const std::string &path, timeout t = forever,
				    const channel_options &options = {},
				    const char *device_name = nullptr)
	{
		manager_options few = {};

		few.channels = 4;
		return connect(manager(device(device_name), few), path, t, options);
	}
	/** Both ends, in this process. */
	static std::pair<channel, channel> pair(const manager &a, const manager &b,
						const channel_options &options = {})
	{
		const h_channel_attr attr = attr_of(options);
		h_channel *pa, *pb;

		detail::check(h_channel_pair(a.ref().get(), b.ref().get(), &attr, &pa, &pb),
			      "h_channel_pair", a.dev());
		std::unique_ptr<h_channel, closer> second(pb);
		channel first(pa, a.ref());

		return { std::move(first), channel(second.release(), b.ref()) };
	}
	channel(channel &&) noexcept = default;
	channel &operator=(channel &&other) noexcept
	{
		if (this != &other) {
			drop();
			state_ = std::move(other.state_);
		}
		return *this;
	}
	~channel() { drop(); }

	/**
	 * Ends the channel and waits until everything has arrived. Whatever it returns or
	 * throws, this end cannot be used any more; it is destroyed when no message of it
	 * is held. Throws EPIPE if the other end is gone without having closed.
	 */
	status close(timeout t = forever)
	{
		h_channel *c = need();
		int ret;

		h_channel_on_ready(c, nullptr, nullptr);
		ret = h_channel_shutdown(c, t.ns());
		state_.reset();
		return detail::outcome(ret, "h_channel_close");
	}
	h_channel *handle() const noexcept { return state_ ? state_->channel : nullptr; }

	/** For the other end's join(). */
	channel_seed seed() const
	{
		channel_seed s;

		::h_channel_seed(need(), &s);
		return s;
	}
	/** Tells this end of the other one; throws EALREADY if another one has joined that. */
	void join(const detail::c_channel_seed &other)
	{
		h_channel *c = need();

		detail::check(h_channel_join(c, &other), "h_channel_join", dev());
	}
	/** Who is at the other end; empty if they did not meet at a listener. */
	std::optional<hamlyn::peer> peer() const
	{
		hamlyn::peer p;
		int ret = h_channel_peer(need(), &p);

		if (ret == -ENOENT)
			return std::nullopt;
		detail::check(ret, "h_channel_peer");
		return p;
	}
	/** Counters, and how it stands. */
	struct h_channel_counters stats() const
	{
		struct h_channel_counters s = {};

		detail::check(::h_channel_stats(need(), &s), "h_channel_stats");
		return s;
	}

	/**
	 * Sends a message, whole or not at all. Throws EPIPE if the other end is gone,
	 * EMSGSIZE if it does not take messages that long.
	 */
	[[nodiscard]] status send(bytes data, timeout t = forever)
	{
		return detail::outcome(h_channel_send(need(), data.data(), data.size(), t.ns()),
				       "h_channel_send");
	}
	/**
	 * Sends a message from memory that may go meanwhile, as a mapping of a file that is
	 * truncated does. Throws EFAULT if not all of it is there; then nothing was sent.
	 */
	[[nodiscard]] status send_checked(bytes data, timeout t = forever)
	{
		return detail::outcome(h_channel_send_checked(need(), data.data(), data.size(),
							      t.ns()),
				       "h_channel_send_checked");
	}
	/** Sends a message that is in several places. */
	[[nodiscard]] status send(std::initializer_list<bytes> pieces, timeout t = forever)
	{
		return send_pieces(pieces.begin(), pieces.size(), t);
	}
	[[nodiscard]] status send_pieces(const bytes *pieces, std::size_t count,
					 timeout t = forever)
	{
		std::vector<iovec> iov(count);

		for (std::size_t i = 0; i < count; i++)
			iov[i] = { const_cast<std::byte *>(pieces[i].data()), pieces[i].size() };
		return detail::outcome(h_channel_sendv(need(), iov.data(), static_cast<int>(count),
						       t.ns()), "h_channel_sendv");
	}
	/**
	 * Memory to build a message in, which is sent from there. Throws EMSGSIZE if the other end
	 * does not take messages that long.
	 */
	loan reserve(std::size_t length)
	{
		h_loan l;

		detail::check(h_channel_reserve(need(), length, &l), "h_channel_reserve", dev());
		return loan(state_, l);
	}
	/**
	 * The next message, where it is; empty, with status::end, at the end. Throws
	 * ECONNRESET if the other end is gone without having closed.
	 */
	result<message> receive(timeout t = forever)
	{
		h_message m;

		return received(h_channel_receive(need(), &m, t.ns()), m, "h_channel_receive");
	}
	/** Receives by copying: how many bytes. Throws EMSGSIZE if there is no room. */
	result<std::size_t> receive(mutable_bytes to, timeout t = forever)
	{
		ssize_t ret = h_channel_receive_copy(need(), to.data(), to.size(), t.ns());

		if (ret >= 0)
			return static_cast<std::size_t>(ret);
		return detail::outcome(ret, "h_channel_receive_copy");
	}
	/**
	 * Sends a request and receives its reply. status::again and status::interrupted:
	 * nothing was sent; status::unanswered: it was, see h_channel_request().
	 */
	result<message> request(bytes data, timeout t = forever)
	{
		h_message m;
		int ret = h_channel_request(need(), data.data(), data.size(), &m, t.ns());

		if (ret == -ETIMEDOUT || ret == -EINPROGRESS)
			return status::unanswered;
		return received(ret, m, "h_channel_request");
	}
	/** Sends a request: the number is for request_wait(), or request_cancel(). */
	result<std::uint32_t> request_send(bytes data, timeout t = forever)
	{
		std::uint32_t id;
		int ret = h_channel_request_send(need(), data.data(), data.size(), &id, t.ns());

		if (ret)
			return detail::outcome(ret, "h_channel_request_send");
		return id;
	}
	/** Receives the reply to a request; empty: to be called again, or it is the end. */
	result<message> request_wait(std::uint32_t id, timeout t = forever)
	{
		h_message m;

		return received(h_channel_request_wait(need(), id, &m, t.ns()), m,
				"h_channel_request_wait");
	}
	/** Gives a request up: its reply is dropped when it comes. */
	void request_cancel(std::uint32_t id) { h_channel_request_cancel(need(), id); }
	/** Answers a request that was received here. Throws EINVAL if it is none. */
	status reply(const message &request, bytes data, timeout t = forever)
	{
		const h_message none = {};

		return detail::outcome(h_channel_reply(need(),
						       request.state_ ? &request.message_ : &none,
						       data.data(), data.size(), t.ns()),
				       "h_channel_reply");
	}
	/** Calls back no more for what arrives, or does so again: see h_channel_pause(). */
	void pause(bool paused) { h_channel_pause(need(), paused); }
	/** Nothing that is sent is a reply but by reply(), see h_channel_reply_only(). */
	void reply_only() { h_channel_reply_only(need()); }
	/**
	 * Sends no more, but goes on receiving. status::ok when everything has arrived,
	 * else to be called again.
	 */
	status shutdown(timeout t = forever)
	{
		return detail::outcome(h_channel_shutdown(need(), t.ns()), "h_channel_shutdown");
	}
	/** Has manager::dispatch() call a function, see h_channel_on_ready(); {}: none. */
	void on_ready(std::function<void()> f)
	{
		detail::set_ready(need(), state_->ready, h_channel_on_ready, std::move(f));
	}

private:
	friend class listener;

	struct closer {
		void operator()(h_channel *c) const noexcept { h_channel_close(c, H_NOWAIT); }
	};

	/* Takes what it is given, also if it throws. */
	channel(h_channel *c, detail::manager_ref m)
	{
		std::unique_ptr<h_channel, closer> owned(c);

		state_ = std::make_shared<message::state>(c, std::move(m));
		owned.release();
	}
	h_channel *need() const { return detail::need(handle(), "channel"); }
	h_dev *dev() const { return h_manager_dev(state_->manager.get()); }
	void drop() noexcept
	{
		if (auto s = std::move(state_); s && s->origin.here())
			h_channel_on_ready(s->channel, nullptr, nullptr);
	}
	result<message> received(int ret, const h_message &m, const char *call)
	{
		if (!ret)
			return message(state_, m);
		return detail::outcome(ret, call);
	}
	static h_channel_attr attr_of(const channel_options &o)
	{
		const std::vector<uid_t> &users = o.connect.users;
		h_channel_attr attr = {};

		attr.max_message = o.max_message;
		attr.flags = o.connect.flags;
		attr.buffers = o.stream.buffers;
		attr.buffer_size = o.stream.buffer_size;
		attr.max_buffer_size = o.stream.max_buffer_size;
		attr.uids = users.empty() ? nullptr : users.data();
		attr.uid_count = static_cast<std::uint32_t>(users.size());
		return attr;
	}

	std::shared_ptr<message::state> state_;
};

// ---- listeners -------------------------------------------------------------

/** Who may connect, and how; what is 0, or empty, means default: see h_listener_attr. */
struct listener_options {
	std::uint32_t flags = 0;		/**< H_CONNECT_TICKETS or 0 */
	std::uint32_t mode = 0;			/**< permission bits of the path */
	std::uint32_t waiting = 0;		/**< how many can be connecting */
	std::chrono::nanoseconds patience{};	/**< how long one may take */
	std::vector<uid_t> users = {};		/**< who may connect; empty: who can */
	h_dev *dev = nullptr;			/**< HOST/NAME: the NIC; nullptr: that of h_open() */
};

/** Where clients find a server. */
class listener {
public:
	/** At a path, '@' and an abstract name, or HOST/NAME: see h_listener_create(). */
	explicit listener(const std::string &path, const listener_options &options = {})
	{
		h_listener_attr attr = {};
		h_listener *l;

		attr.flags = options.flags;
		attr.mode = options.mode;
		attr.waiting = options.waiting;
		/* What is left of a time that has passed is no time, and not for ever. */
		attr.patience_ns = options.patience.count() < 0 ? 1 : options.patience.count();
		attr.uids = options.users.empty() ? nullptr : options.users.data();
		attr.uid_count = static_cast<std::uint32_t>(options.users.size());
		attr.dev = options.dev;
		detail::check_early(h_listener_create(path.c_str(), &attr, &l), "h_listener_create");
		listener_.reset(l);
	}
	listener(listener &&) noexcept = default;
	listener &operator=(listener &&) noexcept = default;

	/** Listens no more, as the destructor does. */
	void close() noexcept { listener_.reset(); }
	h_listener *handle() const noexcept { return listener_.get(); }

	/**
	 * The next client that wants a channel; empty when the time is over. Throws why a
	 * client could not be taken: then the next one may be better.
	 */
	result<channel> accept(const manager &m, timeout t = forever,
			       const channel_options &options = {})
	{
		const h_channel_attr attr = channel::attr_of(options);
		h_channel *c;
		int ret = h_channel_accept(need(), m.ref().get(), &attr, &c, t.ns());

		if (ret)
			return detail::outcome(ret, "h_channel_accept", m.dev());
		return channel(c, m.ref());
	}
	/**
	 * The next client that wants streams; empty when the time is over. Throws why a
	 * client could not be taken.
	 */
	result<stream_pair> accept_streams(const manager &m, timeout t = forever,
					   const stream_options &options = {})
	{
		h_stream_pair pair;
		int ret = h_listener_accept(need(), m.ref().get(), &options, &pair, t.ns());

		if (ret)
			return detail::outcome(ret, "h_listener_accept", m.dev());
		return stream_pair::own(pair, m.ref());
	}
	/** A descriptor for event loops: readable when accepting has something to do. */
	int fd() const { return h_listener_fd(need()); }

private:
	struct destroyer {
		void operator()(h_listener *l) const noexcept { h_listener_destroy(l); }
	};

	h_listener *need() const { return detail::need(listener_.get(), "listener"); }

	std::unique_ptr<h_listener, destroyer> listener_;
};

// ---- servers ---------------------------------------------------------------

/** Properties of a server; what is 0, or empty, means default: see h_server_attr. */
struct server_options {
	const char *device = nullptr;		/**< as device()'s */
	std::uint32_t flags = 0;		/**< H_CONNECT_TICKETS or 0 */
	std::uint32_t mode = 0;			/**< permission bits of the path */
	std::vector<uid_t> users = {};		/**< who may connect; empty: who can */
	std::uint32_t clients = 0;		/**< most at a time */
	std::uint32_t clients_of_user = 0;	/**< and of one user */
	std::uint64_t max_message = 0;		/**< longest message that is taken */
	stream_options stream = {};		/**< of what clients send */
};

/** A message at a server, and whom it is from: for the handler, while that runs. */
class incoming {
public:
	bytes view() const noexcept { return bytes(message_->data, message_->length); }
	std::string_view text() const noexcept { return view().text(); }
	bool is_request() const noexcept { return h_channel_is_request(message_); }
	/** Sends to the client; status::again: return that, and be called again. */
	[[nodiscard]] status send(bytes data) const
	{
		return detail::outcome(h_channel_send(client_, data.data(), data.size(), H_NOWAIT),
				       "h_channel_send");
	}
	/** Answers it, if it is_request(). */
	[[nodiscard]] status reply(bytes data) const
	{
		return detail::outcome(h_channel_reply(client_, message_, data.data(), data.size(),
						       H_NOWAIT), "h_channel_reply");
	}
	/** Which process is the client? */
	hamlyn::peer peer() const
	{
		hamlyn::peer p;

		detail::check(h_channel_peer(client_, &p), "h_channel_peer");
		return p;
	}
	/** The client's, which belongs to the server: there until on_end. */
	h_channel *client() const noexcept { return client_; }
	const h_message *handle() const noexcept { return message_; }

private:
	friend class server;

	incoming(h_channel *c, const h_message *m) noexcept : client_(c), message_(m) {}

	h_channel *client_;
	const h_message *message_;
};

/**
 * A server of many clients: see hamlyn/server.h.
 *
 * The handler says what h_server_create()'s returns: status::ok: done; status::again: call it
 * again with the same message; status::end: the client's channel is to end well. If it throws
 * an error, that ends the client. What else it throws ends that too, and leaves run() or
 * dispatch().
 */
class server {
public:
	using handler = std::function<status(const incoming &)>;
	/** Called with a client that ends, and why: 0 or a negative errno. */
	using ended = std::function<void(h_channel *, int)>;

	explicit server(const std::string &path, handler h, const server_options &options = {},
			ended on_end = {})
		: state_(new state{ std::move(h), std::move(on_end), nullptr, {} })
	{
		h_server_attr attr = {};

		attr.device = options.device;
		attr.on_end = &state::end;
		attr.uids = options.users.empty() ? nullptr : options.users.data();
		attr.uid_count = static_cast<std::uint32_t>(options.users.size());
		attr.mode = options.mode;
		attr.flags = options.flags;
		attr.clients = options.clients;
		attr.clients_of_user = options.clients_of_user;
		attr.buffers = options.stream.buffers;
		attr.buffer_size = options.stream.buffer_size;
		attr.max_buffer_size = options.stream.max_buffer_size;
		attr.max_message = options.max_message;
		detail::check_early(h_server_create(path.c_str(), &state::handle, state_.get(),
						    &attr, &state_->server), "h_server_create");
	}

	/** Serves until stop(): status::ok; status::again when the time is over. */
	status run(timeout t = forever)
	{
		int ret = h_server_run(need(), t.ns());

		state_->rethrow();
		return detail::outcome(ret, "h_server_run");
	}
	/** Ends run(); for any thread, and for signal handlers. */
	void stop() noexcept { h_server_stop(handle()); }
	/** A descriptor for event loops: readable while dispatch() has something to do. */
	int fd()
	{
		int fd = h_server_fd(need());

		detail::check(fd, "h_server_fd");
		return fd;
	}
	void dispatch()
	{
		int ret = h_server_dispatch(need());

		state_->rethrow();
		detail::check(ret, "h_server_dispatch");
	}
	std::uint32_t clients() const { return h_server_clients(need()); }
	/** Ends it, as the destructor does without waiting: see h_server_close(). */
	status close(timeout t = forever)
	{
		h_server *s = need();

		state_->server = nullptr;
		return detail::outcome(h_server_close(s, t.ns()), "h_server_close");
	}
	h_server *handle() const noexcept { return state_ ? state_->server : nullptr; }

private:
	/* Where the library finds it: it does not move. */
	struct state {
		handler handle_;
		ended ended_;
		h_server *server;
		std::exception_ptr thrown;

		~state() { h_server_close(server, H_NOWAIT); }

		/* Nothing is thrown through C. */
		void keep() noexcept
		{
			if (!thrown)
				thrown = std::current_exception();
			h_server_stop(server);
		}
		void rethrow()
		{
			if (thrown)
				std::rethrow_exception(std::exchange(thrown, nullptr));
		}
		static int handle(h_channel *c, const h_message *m, void *arg) noexcept
		{
			auto *s = static_cast<state *>(arg);

			try {
				switch (s->handle_(incoming(c, m))) {
				case status::ok:
					return 0;
				case status::end:
					return -ENODATA;
				default:
					return -EAGAIN;
				}
			} catch (const error &e) {
				return e.number() && e.number() != EAGAIN ? -e.number() : -EPROTO;
			} catch (...) {
				s->keep();
				return -ECANCELED;
			}
		}
		static void end(h_channel *c, int reason, void *arg) noexcept
		{
			auto *s = static_cast<state *>(arg);

			try {
				if (s->ended_)
					s->ended_(c, reason);
			} catch (...) {
				s->keep();
			}
		}
	};

	h_server *need() const { return detail::need(handle(), "server"); }

	std::unique_ptr<state> state_;
};

// ---- publishing ------------------------------------------------------------

/** What is done with messages for which a subscriber has no room. */
enum class policy : std::uint32_t {
	drop_oldest = H_DROP_OLDEST,
	drop_newest = H_DROP_NEWEST,
	wait = H_WAIT,
};

/** Properties of a publisher; what is 0, or empty, means default: see h_publisher_attr. */
struct publisher_options {
	const char *device = nullptr;		/**< as device()'s */
	std::chrono::nanoseconds patience{};	/**< with those of policy::wait; negative: for ever */
	std::uint32_t flags = 0;		/**< H_CONNECT_TICKETS or 0 */
	std::uint32_t mode = 0;			/**< permission bits of the path */
	std::vector<uid_t> users = {};		/**< who may subscribe; empty: who can */
	std::uint32_t history = 0;		/**< how many messages are kept */
	std::uint64_t max_message = 0;		/**< longest message */
	std::uint32_t subscribers = 0;		/**< most at a time */
	std::uint32_t subscribers_of_user = 0;	/**< and of one user */
};

/**
 * One publishes, many subscribe: see hamlyn/publish.h.
 *
 * The destructor does not wait: those at which something has not arrived find a broken channel.
 */
class publisher {
	struct state {
		h_publisher *publisher = nullptr;

		state() = default;
		state(const state &) = delete;
		state &operator=(const state &) = delete;
		~state() { h_publisher_close(publisher, H_NOWAIT); }
	};

public:
	/** Memory in which a message is built; abandoned at the end. It goes with its publisher. */
	class loan {
	public:
		loan(loan &&other) noexcept : state_(std::move(other.state_)), loan_(other.loan_) {}
		loan &operator=(loan &&other) noexcept
		{
			if (this != &other) {
				abandon();
				state_ = std::move(other.state_);
				loan_ = other.loan_;
			}
			return *this;
		}
		~loan() { abandon(); }

		std::byte *data() const noexcept { return view().data(); }
		std::size_t size() const noexcept { return view().size(); }
		/** All of it; nothing any more once it was committed or abandoned. */
		mutable_bytes view() const noexcept
		{
			return state_ && state_->publisher ?
				       mutable_bytes(loan_.data, loan_.length) : mutable_bytes();
		}
		/** Publishes its first bytes. With status::ok it is empty, else it is as it was. */
		[[nodiscard]] status commit(std::size_t length, timeout t = forever)
		{
			h_publisher *p = detail::need(state_ ? state_->publisher : nullptr, "loan");
			status s = detail::outcome(h_publisher_commit(p, &loan_, length, t.ns()),
						   "h_publisher_commit");

			if (s == status::ok)
				state_.reset();
			return s;
		}
		/** Publishes all of it. */
		[[nodiscard]] status commit(timeout t = forever) { return commit(size(), t); }
		/** Gives it back before the end. */
		void abandon() noexcept
		{
			if (auto s = std::move(state_); s && s->publisher && origin_.here())
				h_publisher_abandon(s->publisher, &loan_);
		}

	private:
		friend class publisher;

		loan(std::shared_ptr<state> s, const h_loan &l) noexcept
			: state_(std::move(s)), loan_(l)
		{
		}

		std::shared_ptr<state> state_;
		h_loan loan_;
		detail::origin origin_ = {};
	};

	explicit publisher(const std::string &path, const publisher_options &options = {})
		: state_(std::make_shared<state>())
	{
		h_publisher_attr attr = {};

		detail::watch_forks();
		attr.device = options.device;
		attr.patience_ns = options.patience.count();
		attr.uids = options.users.empty() ? nullptr : options.users.data();
		attr.uid_count = static_cast<std::uint32_t>(options.users.size());
		attr.mode = options.mode;
		attr.flags = options.flags;
		attr.history = options.history;
		attr.max_message = options.max_message;
		attr.subscribers = options.subscribers;
		attr.subscribers_of_user = options.subscribers_of_user;
		detail::check_early(h_publisher_create(path.c_str(), &attr, &state_->publisher),
				    "h_publisher_create");
	}
	publisher(publisher &&) noexcept = default;
	publisher &operator=(publisher &&) noexcept = default;

	/**
	 * Publishes a message, to all or to none. status::again: a subscriber of policy::wait is
	 * in the way, and nobody got it.
	 */
	[[nodiscard]] status send(bytes data, timeout t = forever)
	{
		return detail::outcome(h_publisher_send(need(), data.data(), data.size(), t.ns()),
				       "h_publisher_send");
	}
	/** Memory to build a message in, from which it is sent to all. */
	loan reserve(std::size_t length)
	{
		h_loan l;

		detail::check(h_publisher_reserve(need(), length, &l), "h_publisher_reserve");
		return loan(state_, l);
	}
	/** In place of sleeping: new subscribers are let in. status::again when the time is over. */
	status run(timeout t)
	{
		return detail::outcome(h_publisher_run(need(), t.ns()), "h_publisher_run");
	}
	/** A descriptor for event loops: readable while dispatch() has something to do. */
	int fd()
	{
		int fd = h_publisher_fd(need());

		detail::check(fd, "h_publisher_fd");
		return fd;
	}
	void dispatch() { detail::check(h_publisher_dispatch(need()), "h_publisher_dispatch"); }
	h_publisher_counters stats() const
	{
		h_publisher_counters c = {};

		detail::check(h_publisher_stats(need(), &c), "h_publisher_stats");
		return c;
	}
	/** Ends it; waits until all subscribers have everything: see h_publisher_close(). */
	status close(timeout t = forever)
	{
		h_publisher *p = need();

		state_->publisher = nullptr;
		return detail::outcome(h_publisher_close(p, t.ns()), "h_publisher_close");
	}
	h_publisher *handle() const noexcept { return state_ ? state_->publisher : nullptr; }

private:
	h_publisher *need() const { return detail::need(handle(), "publisher"); }

	std::shared_ptr<state> state_;
};

/** Properties of a subscriber; what is 0, or empty, means default: see h_subscriber_attr. */
struct subscriber_options {
	const char *device = nullptr;			/**< as device()'s */
	hamlyn::policy policy = hamlyn::policy::drop_oldest;
	std::uint32_t history = 0;			/**< how many that were published before */
	connect_options connect = {};
	std::uint64_t max_message = 0;			/**< longest message that is taken */
	stream_options stream = {};			/**< buffers */
};

/** A message that was published, where it was received; given back at the end. */
class publication {
public:
	publication(publication &&other) noexcept
		: state_(std::move(other.state_)), publication_(other.publication_)
	{
	}
	publication &operator=(publication &&other) noexcept
	{
		if (this != &other) {
			release();
			state_ = std::move(other.state_);
			publication_ = other.publication_;
		}
		return *this;
	}
	~publication() { release(); }

	const std::byte *data() const noexcept { return view().data(); }
	std::size_t size() const noexcept { return view().size(); }
	/** All of it; nothing any more once it was released. */
	bytes view() const noexcept
	{
		return state_ ? bytes(publication_.data, publication_.length) : bytes();
	}
	std::string_view text() const noexcept { return view().text(); }
	/** Of the message, of all that were published: from 1 on. */
	std::uint64_t number() const noexcept { return publication_.number; }
	/** How many were lost just before this one. */
	std::uint64_t lost() const noexcept { return publication_.lost; }
	/** Gives it back before the end. */
	void release() noexcept
	{
		if (auto s = std::move(state_); s && s->origin.here())
			h_subscriber_release(s->subscriber, &publication_);
	}

private:
	friend class subscriber;

	/* The subscriber, as long as a message of it is held. */
	struct state {
		h_subscriber *subscriber = nullptr;
		const detail::origin origin = {};

		state() = default;
		state(const state &) = delete;
		state &operator=(const state &) = delete;
		~state() { h_subscriber_close(subscriber); }
	};

	publication(std::shared_ptr<state> s, const h_publication &p) noexcept
		: state_(std::move(s)), publication_(p)
	{
	}

	std::shared_ptr<state> state_;
	h_publication publication_;
};

/** A subscriber: ends with the last message of it that is held. */
class subscriber {
public:
	/**
	 * Subscribes; empty when the time is over. Throws EACCES if it is turned away, EOPNOTSUPP if
	 * the publisher waits for nobody: see h_subscriber_create().
	 */
	static result<subscriber> dial(const std::string &path, timeout t = forever,
				       const subscriber_options &options = {})
	{
		const std::vector<uid_t> &users = options.connect.users;
		subscriber s;
		h_subscriber_attr attr = {};
		int ret;

		detail::watch_forks();
		attr.device = options.device;
		attr.uids = users.empty() ? nullptr : users.data();
		attr.uid_count = static_cast<std::uint32_t>(users.size());
		attr.flags = options.connect.flags;
		attr.policy = static_cast<std::uint32_t>(options.policy);
		attr.history = options.history;
		attr.max_message = options.max_message;
		attr.buffers = options.stream.buffers;
		attr.buffer_size = options.stream.buffer_size;
		attr.max_buffer_size = options.stream.max_buffer_size;
		ret = h_subscriber_create(path.c_str(), &attr, &s.state_->subscriber, t.ns());
		if (ret == -EAGAIN || ret == -ETIMEDOUT || ret == -EINTR)
			return detail::outcome(ret, "h_subscriber_create");
		detail::check_early(ret, "h_subscriber_create");
		return s;
	}
	subscriber(subscriber &&) noexcept = default;
	subscriber &operator=(subscriber &&) noexcept = default;

	/**
	 * The next message; empty, with status::end, when the publisher has ended. Throws ECONNRESET
	 * if it is gone, or has given this subscriber up.
	 */
	result<publication> receive(timeout t = forever)
	{
		h_publication p;
		int ret = h_subscriber_receive(need(), &p, t.ns());

		if (!ret)
			return publication(state_, p);
		return detail::outcome(ret, "h_subscriber_receive");
	}
	/** Readable while there may be something: receive until it says status::again. */
	int fd()
	{
		int fd = h_subscriber_fd(need());

		detail::check(fd, "h_subscriber_fd");
		return fd;
	}
	/** Ends it, as the destructor does: when no message of it is held. */
	void close() noexcept { state_.reset(); }
	h_subscriber *handle() const noexcept { return state_ ? state_->subscriber : nullptr; }

private:
	subscriber() : state_(std::make_shared<publication::state>()) {}
	h_subscriber *need() const { return detail::need(handle(), "subscriber"); }

	std::shared_ptr<publication::state> state_;
};

// ---- work queues -----------------------------------------------------------

/** Properties of a work queue; what is 0, or empty, means default: see h_work_attr. */
struct work_options {
	const char *device = nullptr;		/**< as device()'s */
	std::chrono::nanoseconds patience{};	/**< with a worker that has an item; 0: for ever */
	std::uint32_t flags = 0;		/**< H_CONNECT_TICKETS or 0 */
	std::uint32_t mode = 0;			/**< permission bits of the path */
	std::vector<uid_t> users = {};		/**< who may work; empty: who can */
	std::uint32_t items = 0;		/**< most at a time */
	std::uint64_t max_message = 0;		/**< longest item, and longest result */
	std::uint64_t bytes = 0;		/**< of all items */
	std::uint32_t deliveries = 0;		/**< how often an item is handed out */
	std::uint32_t workers = 0;		/**< most at a time */
	std::uint32_t workers_of_user = 0;	/**< and of one user */
};

/**
 * A queue of work whose workers may die: see hamlyn/work.h.
 *
 * What the functions throw leaves the call that has called them. They may add items.
 */
class work_queue {
public:
	/** Called with an item that was done, and its result. */
	using done = std::function<void(std::uint64_t, bytes)>;
	/** Called with an item that is given up. */
	using failed = std::function<void(std::uint64_t, bytes)>;

	explicit work_queue(const std::string &path, done on_done = {}, failed on_failed = {},
			    const work_options &options = {})
		: state_(new state{ std::move(on_done), std::move(on_failed), nullptr, {} })
	{
		h_work_attr attr = {};

		detail::watch_forks();
		attr.device = options.device;
		attr.on_done = &state::is_done;
		attr.on_failed = &state::has_failed;
		attr.arg = state_.get();
		attr.patience_ns = options.patience.count();
		attr.uids = options.users.empty() ? nullptr : options.users.data();
		attr.uid_count = static_cast<std::uint32_t>(options.users.size());
		attr.mode = options.mode;
		attr.flags = options.flags;
		attr.items = options.items;
		attr.max_message = options.max_message;
		attr.bytes = options.bytes;
		attr.deliveries = options.deliveries;
		attr.workers = options.workers;
		attr.workers_of_user = options.workers_of_user;
		detail::check_early(h_work_create(path.c_str(), &attr, &state_->queue),
				    "h_work_create");
	}

	/** Adds an item: its number; empty if the queue is full when the time is over. */
	result<std::uint64_t> add(bytes data, timeout t = forever)
	{
		std::uint64_t id = 0;
		int ret = h_work_add(need(), data.data(), data.size(), &id, t.ns());

		state_->rethrow();
		if (!ret)
			return id;
		return detail::outcome(ret, "h_work_add");
	}
	/** Hands out items: status::ok when all are done; status::again when the time is over. */
	status run(timeout t = forever)
	{
		int ret = h_work_run(need(), t.ns());

		state_->rethrow();
		return detail::outcome(ret, "h_work_run");
	}
	/** A descriptor for event loops: readable while dispatch() has something to do. */
	int fd()
	{
		int fd = h_work_fd(need());

		detail::check(fd, "h_work_fd");
		return fd;
	}
	void dispatch()
	{
		int ret = h_work_dispatch(need());

		state_->rethrow();
		detail::check(ret, "h_work_dispatch");
	}
	h_work_counters stats() const
	{
		h_work_counters c = {};

		detail::check(h_work_stats(need(), &c), "h_work_stats");
		return c;
	}
	/** Ends it: see h_work_close(). */
	status close(timeout t = forever)
	{
		h_work_queue *q = need();

		state_->queue = nullptr;
		return detail::outcome(h_work_close(q, t.ns()), "h_work_close");
	}
	h_work_queue *handle() const noexcept { return state_ ? state_->queue : nullptr; }

private:
	/* Where the library finds it: it does not move. */
	struct state {
		done done_;
		failed failed_;
		h_work_queue *queue;
		std::exception_ptr thrown;

		~state() { h_work_close(queue, H_NOWAIT); }

		void rethrow()
		{
			if (thrown)
				std::rethrow_exception(std::exchange(thrown, nullptr));
		}
		/* Nothing is thrown through C. */
		template <class F>
		void call(F &f, std::uint64_t id, const void *data, std::size_t n) noexcept
		{
			try {
				if (f)
					f(id, bytes(data, n));
			} catch (...) {
				if (!thrown)
					thrown = std::current_exception();
			}
		}
		static void is_done(std::uint64_t id, const void *data, std::size_t n,
				    void *arg) noexcept
		{
			auto *s = static_cast<state *>(arg);

			s->call(s->done_, id, data, n);
		}
		static void has_failed(std::uint64_t id, const void *data, std::size_t n,
				       void *arg) noexcept
		{
			auto *s = static_cast<state *>(arg);

			s->call(s->failed_, id, data, n);
		}
	};

	h_work_queue *need() const { return detail::need(handle(), "work queue"); }

	std::unique_ptr<state> state_;
};

/** Properties of a worker; what is 0, or empty, means default: see h_worker_attr. */
struct worker_options {
	const char *device = nullptr;		/**< as device()'s */
	std::uint32_t at_once = 0;		/**< how many items it may have at a time */
	connect_options connect = {};
	std::uint64_t max_message = 0;		/**< longest item that is taken */
	stream_options stream = {};		/**< buffers */
};

/** An item that a worker has; given back, for somebody else, at the end. */
class work_item {
public:
	work_item(work_item &&other) noexcept : state_(std::move(other.state_)), item_(other.item_)
	{
	}
	work_item &operator=(work_item &&other) noexcept
	{
		if (this != &other) {
			drop();
			state_ = std::move(other.state_);
			item_ = other.item_;
		}
		return *this;
	}
	~work_item() { drop(); }

	/** All of it; nothing any more once it was done or failed. */
	bytes view() const noexcept { return state_ ? bytes(item_.data, item_.length) : bytes(); }
	std::string_view text() const noexcept { return view().text(); }
	std::uint64_t id() const noexcept { return item_.id; }
	/** How often it was handed out, this time included. */
	std::uint32_t delivery() const noexcept { return item_.delivery; }

	/** Says that it was done. With status::ok it is empty. */
	[[nodiscard]] status done(bytes result = {}, timeout t = forever)
	{
		h_worker *w = detail::need(state_ ? state_->worker : nullptr, "item");

		return ended(h_worker_done(w, &item_, result.data(), result.size(), t.ns()),
			     "h_worker_done");
	}
	/** Gives it back, for somebody else. With status::ok it is empty. */
	[[nodiscard]] status fail(timeout t = forever)
	{
		h_worker *w = detail::need(state_ ? state_->worker : nullptr, "item");

		return ended(h_worker_fail(w, &item_, t.ns()), "h_worker_fail");
	}

private:
	friend class worker;

	/* The worker, as long as an item of it is held. */
	struct state {
		h_worker *worker = nullptr;
		const detail::origin origin = {};

		state() = default;
		state(const state &) = delete;
		state &operator=(const state &) = delete;
		~state() { h_worker_close(worker, H_NOWAIT); }
	};

	work_item(std::shared_ptr<state> s, const h_work_item &i) noexcept
		: state_(std::move(s)), item_(i)
	{
	}
	status ended(int ret, const char *call)
	{
		status s = detail::outcome(ret, call);

		if (s == status::ok)
			state_.reset();
		return s;
	}
	void drop() noexcept
	{
		if (auto s = std::move(state_); s && s->worker && s->origin.here())
			h_worker_fail(s->worker, &item_, H_NOWAIT);
	}

	std::shared_ptr<state> state_;
	h_work_item item_;
};

/** A worker: ends with the last item of it that is held. */
class worker {
public:
	/** Joins a work queue; empty when the time is over: see h_worker_create(). */
	static result<worker> dial(const std::string &path, timeout t = forever,
				   const worker_options &options = {})
	{
		const std::vector<uid_t> &users = options.connect.users;
		h_worker_attr attr = {};
		worker w;
		int ret;

		detail::watch_forks();
		attr.device = options.device;
		attr.uids = users.empty() ? nullptr : users.data();
		attr.uid_count = static_cast<std::uint32_t>(users.size());
		attr.flags = options.connect.flags;
		attr.at_once = options.at_once;
		attr.max_message = options.max_message;
		attr.buffers = options.stream.buffers;
		attr.buffer_size = options.stream.buffer_size;
		attr.max_buffer_size = options.stream.max_buffer_size;
		ret = h_worker_create(path.c_str(), &attr, &w.state_->worker, t.ns());
		if (ret == -EAGAIN || ret == -ETIMEDOUT || ret == -EINTR)
			return detail::outcome(ret, "h_worker_create");
		detail::check_early(ret, "h_worker_create");
		return w;
	}
	worker(worker &&) noexcept = default;
	worker &operator=(worker &&) noexcept = default;

	/** The next item; empty, with status::end, when the queue has ended. */
	result<work_item> take(timeout t = forever)
	{
		h_work_item i;
		int ret = h_worker_take(need(), &i, t.ns());

		if (!ret)
			return work_item(state_, i);
		return detail::outcome(ret, "h_worker_take");
	}
	/** Readable while there may be an item: take until it says status::again. */
	int fd()
	{
		int fd = h_worker_fd(need());

		detail::check(fd, "h_worker_fd");
		return fd;
	}
	/** Leaves; waits until all that was done has arrived. No item of it is held. */
	status close(timeout t = forever)
	{
		h_worker *w = need();

		state_->worker = nullptr;
		state_.reset();
		return detail::outcome(h_worker_close(w, t.ns()), "h_worker_close");
	}
	h_worker *handle() const noexcept { return state_ ? state_->worker : nullptr; }

private:
	worker() : state_(std::make_shared<work_item::state>()) {}
	h_worker *need() const { return detail::need(handle(), "worker"); }

	std::shared_ptr<work_item::state> state_;
};

// ---- datagrams -------------------------------------------------------------

/** Where to send datagrams: a plain value. */
struct datagram_address : h_datagram_address {
	datagram_address() noexcept : h_datagram_address() {}
	datagram_address(const h_datagram_address &a) noexcept : h_datagram_address(a) {}
	/** From a datagram_receiver's seed. */
	static datagram_address resolve(const h_seed &seed)
	{
		datagram_address a;

		detail::check(h_datagram_resolve(&seed, &a), "h_datagram_resolve");
		return a;
	}
	/**
	 * Sends a datagram to an offset in the receiver's buffer; reply: where an answer is to
	 * go. status::ok does not tell that the receiver was ready.
	 */
	[[nodiscard]] status send(const manager &m, bytes data, std::size_t offset = 0,
				  const h_datagram_address *reply = nullptr,
				  timeout t = forever) const
	{
		return detail::outcome(h_datagram_send(m.ref().get(), this, offset, data.data(),
						       data.size(), reply, t.ns()),
				       "h_datagram_send");
	}
};

/** A datagram, where it was received; the receiver is ready again at the end. */
class datagram {
public:
	datagram(datagram &&other) noexcept
		: state_(std::move(other.state_)), datagram_(other.datagram_)
	{
	}
	datagram &operator=(datagram &&other) noexcept
	{
		if (this != &other) {
			release();
			state_ = std::move(other.state_);
			datagram_ = other.datagram_;
		}
		return *this;
	}
	~datagram() { release(); }

	const std::byte *data() const noexcept { return view().data(); }
	std::size_t size() const noexcept { return view().size(); }
	/** All of it; nothing any more once it was released. */
	bytes view() const noexcept
	{
		return state_ ? bytes(datagram_.data, datagram_.length) : bytes();
	}
	std::string_view text() const noexcept { return view().text(); }
	/** Where in the buffer it is. */
	std::size_t offset() const noexcept { return datagram_.offset; }
	/** Where the sender wants an answer, if it does. */
	std::optional<datagram_address> reply() const
	{
		if (!datagram_.has_reply)
			return std::nullopt;
		return datagram_address(datagram_.reply);
	}

	/** Lets the next one in before the end. */
	void release() noexcept
	{
		if (auto s = std::move(state_); s && s->origin.here())
			h_datagram_release(s->receiver);
	}

private:
	friend class datagram_receiver;

	/* The receiver, as long as a datagram of it is held. */
	struct state {
		state(h_datagram_receiver *r, detail::manager_ref m) noexcept
			: receiver(r), manager(std::move(m))
		{
		}
		state(const state &) = delete;
		state &operator=(const state &) = delete;
		~state()
		{
			if (end())
				detail::leak(std::move(manager));
		}

		/* 0 when it is destroyed. */
		int end() noexcept
		{
			int err = receiver && origin.here() ?
					  h_datagram_receiver_destroy(receiver) : 0;

			if (!err)
				receiver = nullptr;
			return err;
		}

		h_datagram_receiver *receiver;
		detail::manager_ref manager;
		detail::cell_ref ready;
		const detail::origin origin = {};
	};

	datagram(std::shared_ptr<state> s, const h_datagram &d) noexcept
		: state_(std::move(s)), datagram_(d)
	{
	}

	std::shared_ptr<state> state_;
	h_datagram datagram_;
};

/** Receives datagrams, one at a time: see datagram.h. */
class datagram_receiver {
public:
	/** With a buffer of so many bytes; 0: default. */
	explicit datagram_receiver(const manager &m, std::size_t length = 0)
	{
		h_datagram_attr attr = {};
		h_datagram_receiver *r;

		attr.length = length;
		detail::check(h_datagram_receiver_create(m.ref().get(), &attr, &r),
			      "h_datagram_receiver_create", m.dev());
		try {
			state_ = std::make_shared<datagram::state>(r, m.ref());
		} catch (...) {
			h_datagram_receiver_destroy(r);
			throw;
		}
	}
	datagram_receiver(datagram_receiver &&) noexcept = default;
	datagram_receiver &operator=(datagram_receiver &&other) noexcept
	{
		if (this != &other) {
			drop();
			state_ = std::move(other.state_);
		}
		return *this;
	}
	~datagram_receiver() { drop(); }

	/**
	 * Lets go of it, as the destructor does: it is destroyed when no datagram is held.
	 * Throws ETIMEDOUT if it stays: to be called again.
	 */
	void close()
	{
		call_nobody();
		detail::end_last(state_, "h_datagram_receiver_destroy");
		state_.reset();
	}
	h_datagram_receiver *handle() const noexcept { return state_ ? state_->receiver : nullptr; }

	/** For senders. */
	hamlyn::seed seed() const
	{
		hamlyn::seed s;

		h_datagram_receiver_seed(need(), &s);
		return s;
	}
	/** For answers to go to. */
	datagram_address address() const
	{
		datagram_address a;

		h_datagram_receiver_address(need(), &a);
		return a;
	}
	/** Receives: it is not ready again before the datagram is released. */
	result<datagram> receive(timeout t = forever)
	{
		h_datagram d;

		return received(h_datagram_receive(need(), &d, t.ns()), d, "h_datagram_receive");
	}
	/** Sends to offset 0 and receives the answer: see h_datagram_request(). */
	result<datagram> request(const h_datagram_address &to, bytes data, timeout t = forever)
	{
		h_datagram d;

		return received(h_datagram_request(need(), &to, data.data(), data.size(), &d,
						   t.ns()), d, "h_datagram_request");
	}
	/** Takes the right to send from all who have it. */
	void revoke()
	{
		h_datagram_receiver *r = need();

		detail::check(h_datagram_revoke(r), "h_datagram_revoke", dev());
	}
	/** The same, and begins anew: the seed from now on. */
	hamlyn::seed rekey()
	{
		h_datagram_receiver *r = need();
		hamlyn::seed s;

		detail::check(h_datagram_rekey(r, &s), "h_datagram_rekey", dev());
		return s;
	}
	/** Counters. */
	h_datagram_stats stats() const
	{
		h_datagram_stats s = {};

		detail::check(h_datagram_receiver_stats(need(), &s), "h_datagram_receiver_stats");
		return s;
	}
	/** Has manager::dispatch() call a function while there is a datagram; {}: none. */
	void on_ready(std::function<void()> f)
	{
		detail::set_ready(need(), state_->ready, h_datagram_receiver_on_ready,
				  std::move(f));
	}

private:
	h_datagram_receiver *need() const { return detail::need(handle(), "datagram receiver"); }
	void call_nobody() noexcept
	{
		if (state_ && state_->origin.here())
			h_datagram_receiver_on_ready(state_->receiver, nullptr, nullptr);
	}
	void drop() noexcept
	{
		call_nobody();
		state_.reset();
	}
	h_dev *dev() const { return h_manager_dev(state_->manager.get()); }
	result<datagram> received(int ret, const h_datagram &d, const char *call)
	{
		if (!ret)
			return datagram(state_, d);
		return detail::outcome(ret, call);
	}

	std::shared_ptr<datagram::state> state_;
};

// ---- tagged remote writes --------------------------------------------------

/** Where to write: a plain value. */
struct tagged_address : h_tagged_address {
	tagged_address() noexcept : h_tagged_address() {}
	tagged_address(const h_tagged_address &a) noexcept : h_tagged_address(a) {}
	/** From a tagged_receiver's seed. */
	static tagged_address resolve(const h_seed &seed)
	{
		tagged_address a;

		detail::check(h_tagged_resolve(&seed, &a), "h_tagged_resolve");
		return a;
	}
	/** Writes to an offset in the receiver's memory, and tells it by a tag. */
	[[nodiscard]] status send(const manager &m, bytes data, std::size_t offset,
				  std::uint64_t tag, timeout t = forever) const
	{
		return detail::outcome(h_tagged_send(m.ref().get(), this, offset, data.data(),
						     data.size(), tag, t.ns()), "h_tagged_send");
	}
};

/** What was written. */
struct tagged_write {
	std::uint64_t tag;
	std::uint32_t length;	/**< bytes */
};

/** Properties of a tagged_receiver; zero means default. */
using tagged_options = h_tagged_attr;

/** Is written to, and told by tags: see tagged.h. */
class tagged_receiver {
public:
	explicit tagged_receiver(const manager &m, const tagged_options &options = {})
		: length_(options.length ? options.length : 4096)
	{
		h_tagged_receiver *r;

		detail::check(h_tagged_receiver_create(m.ref().get(), &options, &r),
			      "h_tagged_receiver_create", m.dev());
		receiver_ = owned(r, m.ref(), nullptr);
	}
	tagged_receiver(tagged_receiver &&) noexcept = default;
	tagged_receiver &operator=(tagged_receiver &&) noexcept = default;

	/** Destroys it, as the destructor does; throws ETIMEDOUT if it stays: call again then. */
	void close() { receiver_.destroy("h_tagged_receiver_destroy"); }
	h_tagged_receiver *handle() const noexcept { return receiver_.get(); }

	/** For senders. */
	hamlyn::seed seed() const
	{
		hamlyn::seed s;

		h_tagged_receiver_seed(need(), &s);
		return s;
	}
	/** Takes the right to write from all who have it: the seed from now on. */
	hamlyn::seed rekey()
	{
		hamlyn::seed s;

		detail::check(h_tagged_receiver_rekey(need(), &s), "h_tagged_receiver_rekey");
		return s;
	}
	/** Where senders write to. */
	mutable_bytes memory() const { return { h_tagged_receiver_data(need()), length_ }; }
	/** The oldest tag. Throws EOVERFLOW if tags were lost. */
	result<tagged_write> receive(timeout t = forever)
	{
		tagged_write w;
		int ret = h_tagged_get_tag(need(), &w.tag, &w.length, t.ns());

		if (!ret)
			return w;
		return detail::outcome(ret, "h_tagged_get_tag");
	}
	/** A certain tag; the others stay where they are. */
	result<tagged_write> receive_tag(std::uint64_t tag, timeout t = forever)
	{
		tagged_write w = { tag, 0 };
		int ret = h_tagged_get_specific_tag(need(), tag, &w.length, t.ns());

		if (!ret)
			return w;
		return detail::outcome(ret, "h_tagged_get_specific_tag");
	}
	/** Has manager::dispatch() call a function while there are tags; {}: none. */
	void on_ready(std::function<void()> f)
	{
		detail::set_ready(need(), receiver_.template keep<1>(),
				  h_tagged_receiver_on_ready, std::move(f));
	}

private:
	struct destroyer {
		int operator()(h_tagged_receiver *r) const noexcept
		{
			/* It may have to stay, but the cell is gone. */
			h_tagged_receiver_on_ready(r, nullptr, nullptr);
			return h_tagged_receiver_destroy(r);
		}
	};
	using owned = detail::owner<h_tagged_receiver, destroyer, detail::manager_ref,
				    detail::cell_ref>;

	h_tagged_receiver *need() const { return detail::need(receiver_.get(), "tagged receiver"); }

	std::size_t length_;
	owned receiver_;
};

// ---- groups ----------------------------------------------------------------

/** The right to fill a part of a group's buffer: a plain value, to be used once a round. */
struct share : h_share {
	share() noexcept : h_share() {}
	share(const h_share &s) noexcept : h_share(s) {}
	/** The share that a seed was made from. */
	static share from_seed(const h_seed &seed)
	{
		share s;

		detail::check(h_share_import(&seed, &s), "h_share_import");
		return s;
	}
	/** In a form that can travel anywhere. */
	hamlyn::seed to_seed() const
	{
		hamlyn::seed s;

		detail::check(h_share_export(this, &s), "h_share_export");
		return s;
	}
	/** Divides it into equal parts: it is of no more use afterwards. */
	std::vector<share> split(std::uint32_t count) { return split(count, nullptr); }
	/** Divides it into parts of so many bytes. */
	std::vector<share> split(const std::vector<std::uint64_t> &lengths)
	{
		return split(static_cast<std::uint32_t>(lengths.size()), lengths.data());
	}
	/** Does its part. */
	[[nodiscard]] status send(const manager &m, bytes data, timeout t = forever) const
	{
		return detail::outcome(h_share_send(m.ref().get(), this, data.data(), data.size(),
						    t.ns()), "h_share_send");
	}

private:
	std::vector<share> split(std::uint32_t count, const std::uint64_t *lengths)
	{
		std::vector<h_share> parts(count);

		detail::check(h_share_split(this, count, lengths, parts.data()), "h_share_split");
		return { parts.begin(), parts.end() };
	}
};

/** The receiving end of a group receive (H 2.5). */
class group {
public:
	/** With a buffer of so many bytes, which may be 0. */
	group(const manager &m, std::size_t length) : length_(length)
	{
		h_group *g;

		detail::check(h_group_create(m.ref().get(), length, nullptr, &g),
			      "h_group_create", m.dev());
		group_ = owned(g, m.ref(), nullptr);
	}
	group(group &&) noexcept = default;
	group &operator=(group &&) noexcept = default;

	/** Destroys it, as the destructor does; throws ETIMEDOUT if it stays: call again then. */
	void close() { group_.destroy("h_group_destroy"); }
	h_group *handle() const noexcept { return group_.get(); }

	/** The share of everything: to be used once, however often it is asked for. */
	hamlyn::share share() const
	{
		hamlyn::share s;

		h_group_share(need(), &s);
		return s;
	}
	/** Waits until all parts have arrived: the buffer, which does not change until reset(). */
	result<bytes> receive(timeout t = forever)
	{
		const void *data;
		int ret = h_group_receive(need(), &data, t.ns());

		if (!ret)
			return bytes(data, length_);
		return detail::outcome(ret, "h_group_receive");
	}
	/** Begins the next round, for the same shares. Throws EBUSY if this one is not over. */
	void reset() { detail::check(h_group_reset(need(), 0), "h_group_reset"); }
	/** Begins the next round with new shares: the old ones are void. */
	void renew() { detail::check(h_group_reset(need(), H_GROUP_NEW_KEY), "h_group_reset"); }
	/** Has manager::dispatch() call a function while the round is over; {}: none. */
	void on_ready(std::function<void()> f)
	{
		detail::set_ready(need(), group_.template keep<1>(), h_group_on_ready,
				  std::move(f));
	}

private:
	struct destroyer {
		int operator()(h_group *g) const noexcept
		{
			/* It may have to stay, but the cell is gone. */
			h_group_on_ready(g, nullptr, nullptr);
			return h_group_destroy(g);
		}
	};
	using owned = detail::owner<h_group, destroyer, detail::manager_ref, detail::cell_ref>;

	h_group *need() const { return detail::need(group_.get(), "group"); }

	std::size_t length_;
	owned group_;
};

// ---- gathers and barriers --------------------------------------------------

/** The root of a gather: all to one, round after round. */
class gather {
public:
	/** Members with parts of the same length. */
	gather(const manager &m, std::uint32_t members, std::uint64_t length)
		: gather(m, members, nullptr, length)
	{
	}
	/** One member for each length. */
	gather(const manager &m, const std::vector<std::uint64_t> &lengths)
		: gather(m, static_cast<std::uint32_t>(lengths.size()), lengths.data(), 0)
	{
	}
	gather(gather &&) noexcept = default;
	gather &operator=(gather &&) noexcept = default;

	/** Destroys it, as the destructor does; throws ETIMEDOUT if it stays: call again then. */
	void close() { gather_.destroy("h_gather_destroy"); }
	h_gather *handle() const noexcept { return gather_.get(); }

	/** For a member: for one process, once. */
	hamlyn::seed seed(std::uint32_t member)
	{
		hamlyn::seed s;

		detail::check(h_gather_seed(need(), member, &s), "h_gather_seed");
		return s;
	}
	/** Where the part of a member is. */
	std::uint64_t offset(std::uint32_t member) const { return h_gather_offset(need(), member); }
	/** Waits for all parts of the next round; two can be held until release(). */
	result<bytes> receive(timeout t = forever)
	{
		const void *data;
		int ret = h_gather_receive(need(), &data, t.ns());

		if (!ret)
			return bytes(data, h_gather_offset(handle(), members_));
		return detail::outcome(ret, "h_gather_receive");
	}
	/** The part of a member, in what receive() gave. */
	bytes part(bytes round, std::uint32_t member) const
	{
		std::uint64_t at = offset(member);

		return round.subview(at, offset(member + 1) - at);
	}
	/** Lets members overwrite the oldest round that was received. */
	void release() { detail::check(h_gather_release(need()), "h_gather_release"); }

private:
	struct destroyer {
		int operator()(h_gather *g) const noexcept { return h_gather_destroy(g); }
	};
	using owned = detail::owner<h_gather, destroyer, detail::manager_ref>;

	gather(const manager &m, std::uint32_t members, const std::uint64_t *lengths,
	       std::uint64_t length)
		: members_(members)
	{
		h_gather *g;

		detail::check(h_gather_create(m.ref().get(), members, lengths, length, &g),
			      "h_gather_create", m.dev());
		gather_ = owned(g, m.ref());
	}
	h_gather *need() const { return detail::need(gather_.get(), "gather"); }

	std::uint32_t members_;
	owned gather_;
};

/** A member of a gather. The destructor does not wait: call leave() to end it well. */
class gather_member {
public:
	gather_member(const manager &m, const h_seed &seed)
	{
		h_gather_member *p;

		detail::check(h_gather_join(m.ref().get(), &seed, &p), "h_gather_join", m.dev());
		member_ = owned(p, m.ref());
	}
	gather_member(gather_member &&) noexcept = default;
	gather_member &operator=(gather_member &&) noexcept = default;

	h_gather_member *handle() const noexcept { return member_.get(); }

	/** How long its part is. */
	std::uint64_t length() const { return h_gather_length(need()); }
	/** Does its part of the next round. */
	[[nodiscard]] status send(bytes data, timeout t = forever)
	{
		return detail::outcome(h_gather_send(need(), data.data(), data.size(), t.ns()),
				       "h_gather_send");
	}
	/** Waits until the root has released all that it has sent. */
	status wait(timeout t = forever)
	{
		return detail::outcome(h_gather_wait(need(), t.ns()), "h_gather_wait");
	}
	/** Does no more, as the destructor does; throws ETIMEDOUT if it stays: call again then. */
	void leave() { member_.destroy("h_gather_leave"); }

private:
	struct leaver {
		int operator()(h_gather_member *p) const noexcept { return h_gather_leave(p); }
	};
	using owned = detail::owner<h_gather_member, leaver, detail::manager_ref>;

	h_gather_member *need() const { return detail::need(member_.get(), "gather member"); }

	owned member_;
};

/** Nobody gets out before everybody has got in. */
class barrier {
public:
	/** Creates it and takes part in it; participants: how many, this one included. */
	barrier(const manager &m, std::uint32_t participants)
	{
		h_barrier *b;

		detail::check(h_barrier_create(m.ref().get(), participants, &b),
			      "h_barrier_create", m.dev());
		barrier_ = owned(b, m.ref());
	}
	/** Takes part in it. */
	barrier(const manager &m, const h_seed &seed)
	{
		h_barrier *b;

		detail::check(h_barrier_join(m.ref().get(), &seed, &b), "h_barrier_join", m.dev());
		barrier_ = owned(b, m.ref());
	}
	barrier(barrier &&) noexcept = default;
	barrier &operator=(barrier &&) noexcept = default;

	h_barrier *handle() const noexcept { return barrier_.get(); }

	/** For another participant, 1 and up: for one process, once. */
	hamlyn::seed seed(std::uint32_t participant)
	{
		hamlyn::seed s;

		detail::check(h_barrier_seed(need(), participant, &s), "h_barrier_seed");
		return s;
	}
	/** Waits until all participants wait; after status::again it is to be called again. */
	[[nodiscard]] status wait(timeout t = forever)
	{
		return detail::outcome(h_barrier_wait(need(), t.ns()), "h_barrier_wait");
	}
	/** Leaves it, as the destructor does; throws ETIMEDOUT if it stays: call again then. */
	void leave() { barrier_.destroy("h_barrier_destroy"); }

private:
	struct leaver {
		int operator()(h_barrier *b) const noexcept { return h_barrier_destroy(b); }
	};
	using owned = detail::owner<h_barrier, leaver, detail::manager_ref>;

	h_barrier *need() const { return detail::need(barrier_.get(), "barrier"); }

	owned barrier_;
};

} // namespace hamlyn

#if defined(__cpp_lib_ranges)
template <>
inline constexpr bool std::ranges::enable_borrowed_range<hamlyn::bytes> = true;
template <>
inline constexpr bool std::ranges::enable_view<hamlyn::bytes> = true;
template <>
inline constexpr bool std::ranges::enable_borrowed_range<hamlyn::mutable_bytes> = true;
template <>
inline constexpr bool std::ranges::enable_view<hamlyn::mutable_bytes> = true;
#endif

#endif /* HAMLYN_HAMLYN_HPP */
