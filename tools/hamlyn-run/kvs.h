/* SPDX-License-Identifier: GPL-2.0-only */
/* What processes have published for each other. */
#ifndef RUN_KVS_H
#define RUN_KVS_H

#include <stddef.h>

#define KVS_KEY_BYTES		64	/* the 0 at the end included, as with all of these */
#define KVS_VALUE_BYTES		1024
#define KVS_PROCESS_KEYS	256
#define KVS_PROCESS_BYTES	65536	/* keys and values */

struct kvs_text;

/**
 * struct kvs_share - what one process has put in
 * @keys: their number
 * @bytes: of keys and values
 */
struct kvs_share {
	size_t keys;
	size_t bytes;
};

/**
 * struct kvs - the store
 * @buckets: lists of texts whose keys have one hash
 * @shares: of each process
 */
struct kvs {
	struct kvs_text **buckets;
	struct kvs_share *shares;
};

void kvs_init(struct kvs *kvs, int processes);
void kvs_uninit(struct kvs *kvs);

/* Return: NULL, or why it was not put in: one word, for the answer. */
const char *kvs_put(struct kvs *kvs, int rank, const char *key, const char *value);

/* Return: the value or NULL; it stays until kvs_uninit(). */
const char *kvs_get(const struct kvs *kvs, const char *key);

#endif /* RUN_KVS_H */
