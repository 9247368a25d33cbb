// SPDX-License-Identifier: GPL-2.0-only
/* What processes have published. A key is put in once, as with other launchers of PMI-1. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kvs.h"
#include "message.h"

#define BUCKETS	8192

struct kvs_text {
	struct kvs_text *next;
	char *value;		/* behind the key */
	char key[];
};

void kvs_init(struct kvs *kvs, int processes)
{
	kvs->buckets = allocate(BUCKETS, sizeof(*kvs->buckets));
	kvs->shares = allocate((size_t)processes, sizeof(*kvs->shares));
}

void kvs_uninit(struct kvs *kvs)
{
	struct kvs_text *text;
	size_t i;

	for (i = 0; i < BUCKETS; i++)
		while ((text = kvs->buckets[i])) {
			kvs->buckets[i] = text->next;
			free(text);
		}
	free(kvs->buckets);
	free(kvs->shares);
}

/* FNV-1a */
static struct kvs_text **bucket(const struct kvs *kvs, const char *key)
{
	uint32_t hash = 2166136261u;

	for (; *key; key++)
		hash = (hash ^ (unsigned char)*key) * 16777619u;
	return &kvs->buckets[hash % BUCKETS];
}

const char *kvs_get(const struct kvs *kvs, const char *key)
{
	const struct kvs_text *text;

	for (text = *bucket(kvs, key); text; text = text->next)
		if (!strcmp(text->key, key))
			return text->value;
	return NULL;
}

const char *kvs_put(struct kvs *kvs, int rank, const char *key, const char *value)
{
	size_t key_bytes = strlen(key) + 1, bytes = key_bytes + strlen(value) + 1;
	struct kvs_share *share = &kvs->shares[rank];
	struct kvs_text **head = bucket(kvs, key), *text;

	if (kvs_get(kvs, key))
		return "duplicate_key";
	if (share->keys == KVS_PROCESS_KEYS)
		return "too_many_keys_of_one_process";
	if (bytes > KVS_PROCESS_BYTES - share->bytes)
		return "too_many_bytes_of_one_process";
	text = allocate(1, sizeof(*text) + bytes);
	text->value = text->key + key_bytes;
	memcpy(text->key, key, key_bytes);
	memcpy(text->value, value, bytes - key_bytes);
	text->next = *head;
	*head = text;
	share->keys++;
	share->bytes += bytes;
	return NULL;
}
