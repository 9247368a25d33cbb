// SPDX-License-Identifier: MIT
#include "endpoint/work.h"

#include <stdlib.h>
#include <string.h>

/* An id: the place in the table, and above it how often that was used. */
#define PLACE_BITS	14

_Static_assert(HF_WORKS_MAX <= 1 << PLACE_BITS, "an id has a place in it");

static int grow(struct hf_works *works)
{
	struct hf_work **chunks;
	struct hf_work *chunk;

	if (works->count >= HF_WORKS_MAX)
		return -FI_EAGAIN;
	chunks = realloc(works->chunks,
			 (works->count / HF_WORKS_CHUNK + 1) * sizeof(*chunks));
	if (!chunks)
		return -FI_ENOMEM;
	works->chunks = chunks;
	chunk = calloc(HF_WORKS_CHUNK, sizeof(*chunk));
	if (!chunk)
		return -FI_ENOMEM;
	chunks[works->count / HF_WORKS_CHUNK] = chunk;
	for (uint32_t i = HF_WORKS_CHUNK; i-- > 0;) {
		chunk[i].id = works->count + i;
		chunk[i].next = works->spare;
		works->spare = &chunk[i];
	}
	works->count += HF_WORKS_CHUNK;
	return 0;
}

struct hf_work *hf_work_new(struct hf_works *works, enum hf_work_kind kind)
{
	struct hf_work *work;
	uint32_t id;

	if (!works->spare && grow(works))
		return NULL;
	work = works->spare;
	works->spare = work->next;
	/* HF_NO_ID is never drawn: the upper part is 0 only before the first use. */
	id = work->id + (1U << PLACE_BITS);
	if (!(id >> PLACE_BITS))
		id += 1U << PLACE_BITS;
	memset(work, 0, sizeof(*work));
	work->id = id;
	work->kind = kind;
	work->used = true;
	works->ours += hf_work_is_ours(kind);
	return work;
}

struct hf_work *hf_work_find(struct hf_works *works, uint32_t id)
{
	uint32_t place = id & ((1U << PLACE_BITS) - 1);
	struct hf_work *work;

	if (place >= works->count)
		return NULL;
	work = &works->chunks[place / HF_WORKS_CHUNK][place % HF_WORKS_CHUNK];
	return work->used && work->id == id ? work : NULL;
}

void hf_work_end(struct hf_works *works, struct hf_work *work)
{
	works->ours -= hf_work_is_ours(work->kind);
	work->used = false;
	work->next = works->spare;
	works->spare = work;
}

/* The next that is under way, from place *@at on, which moves behind it; NULL: none. */
struct hf_work *hf_work_next(struct hf_works *works, uint32_t *at)
{
	while (*at < works->count) {
		uint32_t i = (*at)++;
		struct hf_work *work = &works->chunks[i / HF_WORKS_CHUNK][i % HF_WORKS_CHUNK];

		if (work->used)
			return work;
	}
	return NULL;
}

void hf_works_free(struct hf_works *works)
{
	for (uint32_t i = 0; i < works->count / HF_WORKS_CHUNK; i++)
		free(works->chunks[i]);
	free(works->chunks);
}
