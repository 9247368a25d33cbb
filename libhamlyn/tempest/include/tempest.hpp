/* SPDX-License-Identifier: MIT */
/*
 * The Tempest interface for C++: one TPPI_send() for all lists of items (T 3.3.2). C++17.
 *
 * Its arguments are those of the C functions, without the types in the name: an int is a
 * word; a pointer and a number of bytes are a region, or, with a TPPI_BlkTagChange after
 * them, a block. What is to be forwarded is TPPI_forward(bytes), since it would be a word
 * otherwise.
 */
#ifndef TEMPEST_HPP
#define TEMPEST_HPP

#include <limits>
#include <type_traits>

#include <tempest.h>

/** struct TPPI_forward - an item: bytes of the message that is being handled */
struct TPPI_forward {
	explicit TPPI_forward(int count) : bytes(count)
	{
	}
	int bytes;
};

namespace tempest_detail {

template <char... Letters>
struct text {
	static constexpr char value[] = { Letters..., 0 };
};

template <typename T>
constexpr bool is_word = std::is_integral_v<T>;

template <typename T>
constexpr bool is_pointer = std::is_pointer_v<T>;

/* The types of the items, as TPPI_send_items() wants them, after Text. */
template <typename Text, typename... Arguments>
struct items;

template <char... Letters>
struct items<text<Letters...>> {
	using type = text<Letters...>;
};

template <char... Letters, typename First, typename... Rest>
struct items<text<Letters...>, First, Rest...> {
	static constexpr auto choose()
	{
		if constexpr (std::is_same_v<First, TPPI_forward>) {
			return typename items<text<Letters..., 'F'>, Rest...>::type();
		} else if constexpr (is_word<First>) {
			static_assert(sizeof(First) <= sizeof(int), "a word is an int");
			return typename items<text<Letters..., 'W'>, Rest...>::type();
		} else {
			static_assert(is_pointer<First>, "an item is an int, a pointer with a "
							 "length, or a TPPI_forward");
			return region_or_block(static_cast<void (*)(Rest...)>(nullptr));
		}
	}

	template <typename Length, typename Change, typename... More>
	static constexpr auto region_or_block(void (*)(Length, Change, More...))
	{
		static_assert(std::is_integral_v<Length>, "a pointer's length is missing");
		if constexpr (std::is_same_v<Change, TPPI_BlkTagChange>)
			return typename items<text<Letters..., 'B', 'a'>, More...>::type();
		else
			return typename items<text<Letters..., 'R'>, Change, More...>::type();
	}

	template <typename Length>
	static constexpr auto region_or_block(void (*)(Length))
	{
		static_assert(std::is_integral_v<Length>, "a pointer's length is missing");
		return typename items<text<Letters..., 'R'>>::type();
	}

	using type = decltype(choose());
};

inline int pass(TPPI_forward item)
{
	return item.bytes;
}

inline TPPI_BlkTagChange pass(TPPI_BlkTagChange change)
{
	return change;
}

/* A length that is no int is none that a message can have: TPPI_send_items() refuses it. */
template <typename T>
inline auto pass(T argument)
{
	if constexpr (std::is_pointer_v<T>)
		return const_cast<void *>(static_cast<const void *>(argument));
	else if constexpr (sizeof(T) > sizeof(int))
		return argument >= 0 && argument <= std::numeric_limits<int>::max() ?
			       static_cast<int>(argument) : -1;
	else
		return static_cast<int>(argument);
}

} // namespace tempest_detail

/**
 * TPPI_send() - send a message of any items (T 3.3.2)
 * @dest: node
 * @pc: its handler there
 * @arguments: of the items, one after the other
 */
template <typename... Arguments>
inline void TPPI_send(TPPI_NodeId dest, TPPI_MessageHandlerPtr pc, Arguments... arguments)
{
	using types = typename tempest_detail::items<tempest_detail::text<>, Arguments...>::type;

	TPPI_send_items(dest, pc, types::value, tempest_detail::pass(arguments)...);
}

#endif /* TEMPEST_HPP */
