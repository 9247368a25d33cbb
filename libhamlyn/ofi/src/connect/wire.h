/* SPDX-License-Identifier: MIT */
/*
 * What the two ends of a connection say to each other, one header a message of the channel.
 *
 * Both are on one host, or at least of one byte order. Nothing in a header is believed: ids are
 * looked up, keys compared, lengths held against what was posted or registered.
 *
 *	SEND		the message follows, after its tag if it is TAGGED
 *	SEND_LONG	a message that is longer, after its tag if it is TAGGED. HF_MAX_PLACES
 *			places at most say where it is, if the receiver may look there; otherwise
 *			it asks for it by CLEAR
 *	WRITE		a target, and what is to be written there
 *	WRITE_LONG	a target, and places as of SEND_LONG
 *	READ		a target, and places where the target may put it
 *	CLEAR		go on with your operation @id: send @length bytes of it to my @data
 *	PIECE		for your operation @id, from byte @data on
 *	DONE		your operation @id has ended, with error @data
 *	ATOMIC		a target, what is to be done there (@data, see atomic.h), and operands. If
 *			it fetches, what was there comes as a PIECE
 */
#ifndef HAMLYN_OFI_WIRE_H
#define HAMLYN_OFI_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum hf_wire_op {
	HF_SEND = 1,
	HF_SEND_LONG,
	HF_WRITE,
	HF_WRITE_LONG,
	HF_READ,
	HF_CLEAR,
	HF_PIECE,
	HF_DONE,
	HF_ATOMIC,
};

#define HF_HAS_DATA	(1U << 0)	/* @data is for the other end's completion */
#define HF_WANT_DONE	(1U << 1)	/* SEND: say when it is in its buffer */
#define HF_LAST		(1U << 2)	/* PIECE: no other comes */
#define HF_TAGGED	(1U << 3)	/* SEND, SEND_LONG: between two of FI_EP_RDM */

#define HF_NO_ID	0U
#define HF_MAX_PLACES	4
#define HF_EAGER	16640U		/* longest payload of SEND and WRITE */
#define HF_ORDERED	HF_EAGER	/* longest read or write that is carried out in order */
#define HF_PIECE_BYTES	57344U		/* longest payload of PIECE: a channel's buffer holds it */

struct hf_header {
	uint8_t op;
	uint8_t flags;
	uint16_t places;
	uint32_t id;
	uint64_t length;
	uint64_t data;
};

struct hf_target {
	uint64_t key;
	uint64_t address;
};

struct hf_place {
	uint64_t address;
	uint64_t length;
};

_Static_assert(sizeof(struct hf_header) == 24, "a header has no holes");

/*
 * A header as words: written and read as such, as the first one says all that there is to look at,
 * and a word that was written byte by byte is not to be had at once.
 */
struct hf_words {
	uint64_t first;
	uint64_t length;
	uint64_t data;
};

_Static_assert(offsetof(struct hf_header, length) == offsetof(struct hf_words, length) &&
	       offsetof(struct hf_header, data) == offsetof(struct hf_words, data),
	       "the same words");

/* Of a header without places and id. */
static inline uint64_t hf_first_word(uint8_t op, uint8_t flags)
{
	const struct hf_header header = { .op = op, .flags = flags };
	uint64_t word;

	memcpy(&word, &header, sizeof(word));
	return word;
}

#endif
