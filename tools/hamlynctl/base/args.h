/* SPDX-License-Identifier: GPL-2.0-only */
/* The words after a verb: NICs, ids, keywords with values. */
#ifndef HAMLYNCTL_ARGS_H
#define HAMLYNCTL_ARGS_H

#include "base/ctl.h"

#define MAX_VALUES	48
#define MAX_NIC		255
#define MAX_HOST	(UINT32_MAX - 1)
#define VALUE_BYTES	16

enum param_kind {
	PARAM_NUMBER,	/* from min to max */
	PARAM_SIZE,	/* the same, with K, M, G or T behind it */
	PARAM_LIMIT,	/* the same, or "unlimited": the highest number of its type */
	PARAM_RATE,	/* 0.5% or 5000ppm */
	PARAM_WORD,	/* one of names; its place in the list is the number */
	PARAM_USER,	/* name or number */
	PARAM_USERS,	/* PARAM_WORD, or PARAM_USER_MAP */
	PARAM_USER_MAP,	/* FROM:TO,... */
	PARAM_NETNS,	/* name, path or process; becomes a file descriptor */
	PARAM_DEVICE,	/* name of a netdev */
	PARAM_ADDRESS,	/* IPv4 or IPv6 */
	PARAM_ID,	/* 16 bytes, hexadecimal */
	PARAM_ID_FROM,	/* the same, made from a name */
	PARAM_SET,	/* takes no value: the number is min */
	PARAM_GROUP,	/* takes no value: the keywords of the group follow */
	PARAM_OFF,	/* takes no value: all 32-bit ones of the group become 0 */
	PARAM_LOCAL,	/* PARAM_NUMBER that is not for the kernel */
};

struct param {
	const char *name;
	const char *value;		/* what the value is called in the help */
	const char *what;
	enum param_kind kind;
	uint8_t bits;			/* of the attribute: 16, 32, 64; 0: it is there unless 0 */
	uint16_t attr;			/* 0: it is not for the kernel */
	/*
	 * Attribute that it is inside of; 0: none. It needs that PARAM_GROUP before it, if there
	 * is one.
	 */
	uint16_t group;
	uint64_t min, max;
	const char *const *names;	/* ends with NULL */
	const struct param *more;	/* without a name: where the list goes on, or NULL */
};

/* The entry of a list at @param or the next one; NULL at the end. */
static inline const struct param *param_here(const struct param *param)
{
	while (param && !param->name)
		param = param->more;
	return param;
}

struct value {
	const struct param *param;
	uint64_t number;
	const char *text;			/* of PARAM_DEVICE and PARAM_USER_MAP */
	unsigned char bytes[VALUE_BYTES];	/* of addresses and ids */
	uint8_t length;				/* how many */
};

struct values {
	struct value at[MAX_VALUES];
	size_t count;
};

struct nic_name {
	uint32_t index;
	char label[16];		/* for messages */
};

const char *words_take(struct words *words);	/* NULL: there is none */
int words_end(const struct words *words);
/* A NIC that must be named, an id that must be given; status. */
int words_take_nic(struct words *words, struct nic_name *nic);
int words_take_id(struct words *words, const char *what, uint32_t *id);

int parse_number(const char *what, const char *text, uint64_t min, uint64_t max,
		 uint64_t *number);
int parse_size(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *number);
int parse_rate(const char *what, const char *text, uint64_t *ppm);
bool find_user(const char *text, uint64_t *uid);	/* by name or number */
int parse_user(const char *text, uint64_t *uid);
/* The id of a fabric that has that name: FNV-1a, of 128 bits. */
void id_from_name(const char *name, unsigned char *id);
int parse_nic(const char *text, struct nic_name *nic);
int parse_seconds(const char *what, const char *text, uint32_t *milliseconds);

/* Takes all words that are left; status. */
int params_parse(const struct param *params, struct words *words, struct values *values);
/* A NIC, and then keywords; status. */
int params_parse_of_nic(const struct param *params, struct words *words, struct nic_name *nic,
			struct values *values);
int values_add(struct values *values, const struct value *value);
const struct value *values_find(const struct values *values, const char *name);

/*
 * Place of @word in a table of @count names, @stride bytes apart: the name itself, or the start of
 * exactly one. Less than 0 after a message that says what is allowed.
 */
int pick(const char *what, const char *word, const void *names, size_t count, size_t stride);

#endif /* HAMLYNCTL_ARGS_H */
