// SPDX-License-Identifier: MIT
/*
 * A manager's memory: few areas, many pieces.
 *
 * Pieces are powers of two, but for the last one of an area, which may end with it:
 * where there is no more memory, that is. They are kept by size when they are given
 * back. An area that nothing is left of goes back to the device when the manager keeps
 * more unused than it uses: then others have it. What end points grow by has areas of its own,
 * which go back at once, but for a little: with others in them they would stay.
 *
 * A terminus can send from so many areas and no more. Some of its tags are the library's, or
 * what an end point needs to send could not be had any more when the application had
 * registered enough; and where few are left, areas grow faster.
 */
#include <stdlib.h>

#include "manager/manager.h"

#define SMALLEST	64
#define FIRST_CHUNK	(64u << 10)
#define SMALL_CHUNKS	3	/* of a terminus, before they grow faster */
#define FEW_TAGS	2	/* then each has to last */
#define MOST_CHUNK	((size_t)16 << 20)	/* but for one piece that is larger */
#define FEWER_ADVICE	"unregister one, or register one area that holds several"
#define OTHER_ADVICE	"register fewer areas, or take another manager"
#define GROWN_CHUNK	(1u << 20)	/* as much as most end points grow to */
#define KEEP_UNUSED	((size_t)1 << 20)	/* of a pool, in any case */

/*
 * What is known of each SMALLEST bytes: the class of the piece that begins there, and
 * whether somebody has it. Pieces are neither split nor joined, so where one begins
 * one begins for ever.
 */
#define PIECE_CLASS	0x3f
#define PIECE_BEGINS	0x40
#define PIECE_GIVEN	0x80

_Static_assert(!((H_MEMORY_CLASSES - 1) & ~PIECE_CLASS), "a class fits into a piece's byte");

/*
 * What each piece was cut as is kept outside of it: receive memory is written by
 * others.
 */
struct h_piece {
	struct h_piece *next;
	struct h_chunk *chunk;
	uint64_t base;
	unsigned int class;
};

struct h_chunk {
	struct h_chunk *next;
	struct h_area *area;
	size_t used;
	uint32_t given;		/* pieces that somebody has */
	int tag;		/* -1: of no terminus */
	bool grown;		/* for pieces that are beyond what end points are made with */
	unsigned char *pieces;	/* PIECE_*, by SMALLEST */
};

static unsigned int class_of(size_t length)
{
	unsigned int class = 0;

	while (((size_t)SMALLEST << class) < length)
		class++;
	return class;
}

static unsigned int areas_of(const struct h_pool *pool)
{
	const struct h_chunk *chunk;
	unsigned int n = 0;

	for (chunk = pool->chunks; chunk; chunk = chunk->next)
		n++;
	return n;
}

int h__pool_spare_tag(const struct h_pool *pool)
{
	unsigned int areas = areas_of(pool);
	unsigned int own = areas < H_OWN_TAGS ? H_OWN_TAGS - areas : 0;

	if (h__terminus_free_tags(pool->terminus) > own)
		return h__terminus_free_tag(pool->terminus);
	return h__refuse(pool->manager->dev, -ENOSPC,
			 "%u of %u send buffer tags are the manager's own: " FEWER_ADVICE,
			 areas + own, h__dev_limits(pool->manager->dev)->max_tags);
}

static int chunk_bind(struct h_pool *pool, struct h_chunk *chunk)
{
	chunk->tag = -1;
	if (!pool->terminus)
		return 0;
	chunk->tag = h__terminus_free_tag(pool->terminus);
	if (chunk->tag < 0)
		return h__refuse(pool->manager->dev, -ENOSPC,
				 "all %u send buffer tags, and %zu KiB, are in use: " OTHER_ADVICE,
				 h__dev_limits(pool->manager->dev)->max_tags, pool->total >> 10);
	return h_terminus_bind(pool->terminus, chunk->tag, chunk->area, 0, 0);
}

static bool few_tags(const struct h_pool *pool)
{
	return pool->terminus && h__terminus_free_tags(pool->terminus) <= FEW_TAGS;
}

/*
 * To send from, each as large as all before, or more: few areas, whatever is asked for. Others are
 * not counted so: a quarter of what there is, so that little of it lies idle.
 */
static size_t chunk_size(const struct h_pool *pool, size_t length, bool grown)
{
	size_t size = pool->terminus ? pool->total : pool->total / 4;

	if (grown && !few_tags(pool))
		return length < GROWN_CHUNK ? GROWN_CHUNK : length;
	if (few_tags(pool))
		size *= 7;
	else if (pool->terminus && areas_of(pool) >= SMALL_CHUNKS)
		size *= 3;
	if (size < FIRST_CHUNK)
		size = FIRST_CHUNK;
	if (size > MOST_CHUNK)
		size = MOST_CHUNK;
	return size < length ? length : size;
}

/* Large was a wish; @whole, and not just @length, is another one. */
static size_t next_smaller(size_t size, size_t whole, size_t length)
{
	if (size <= whole)
		return length;
	return size / 2 > whole ? size / 2 : whole;
}

/* Other failures are not better with less, and may have taken seconds. */
bool h__is_too_much(int err)
{
	return err == -ENOSPC || err == -ENOMEM || err == -E2BIG || err == -EDQUOT;
}

/* area_lock held. */
static int chunk_make(struct h_pool *pool, unsigned int class, size_t length, bool grown,
		      struct h_chunk **out)
{
	struct h_chunk *chunk = calloc(1, sizeof(*chunk));
	struct h_dev *dev = pool->manager->dev;
	size_t whole = (size_t)SMALLEST << class;
	size_t size = chunk_size(pool, whole, grown);
	struct h_why why;
	int err;

	if (!chunk)
		return -ENOMEM;
	chunk->grown = grown;
	while ((err = h_area_alloc(dev, size, &chunk->area)) &&
	       h__is_too_much(err) && size > length)
		size = next_smaller(size, whole, length);
	if (err)
		goto free_chunk;
	err = -ENOMEM;
	chunk->pieces = calloc(1, h_area_length(chunk->area) / SMALLEST);
	if (!chunk->pieces)
		goto remove_area;
	err = chunk_bind(pool, chunk);
	if (err)
		goto free_pieces;
	*out = chunk;
	return 0;

free_pieces:
	free(chunk->pieces);
remove_area:
	h__why_keep(dev, &why);
	h_area_remove(chunk->area);
	h__why_restore(dev, &why);
free_chunk:
	free(chunk);
	return err;
}

/* Bytes of the piece of a class that begins there. */
static size_t room_at(const struct h_chunk *chunk, uint64_t base, unsigned int class)
{
	size_t whole = (size_t)SMALLEST << class;
	size_t left = h_area_length(chunk->area) - base;

	return whole < left ? whole : left;
}

static void piece_is(const struct h_chunk *chunk, uint64_t base,
		     unsigned int class, struct h_memory *memory)
{
	*memory = (struct h_memory) {
		.addr = (char *)h_area_addr(chunk->area) + base,
		.length = room_at(chunk, base, class),
		.area = chunk->area,
		.base = base,
	};
}

/* Pieces are aligned to their size, up to a page: whole cache lines and pages. */
static bool cut(struct h_chunk *chunk, unsigned int class, size_t length,
		struct h_memory *memory)
{
	size_t whole = (size_t)SMALLEST << class;
	size_t align = whole < 4096 ? whole : 4096;
	size_t base = (chunk->used + align - 1) & ~(align - 1);

	if (base > h_area_length(chunk->area) ||
	    length > h_area_length(chunk->area) - base)
		return false;
	chunk->used = base + room_at(chunk, base, class);
	chunk->given++;
	chunk->pieces[base / SMALLEST] =
		(unsigned char)(class | PIECE_BEGINS | PIECE_GIVEN);
	piece_is(chunk, base, class, memory);
	return true;
}

/* Where may it be? ANY: wherever there is room. */
enum kind { MADE_WITH, GROWN, ANY };

static bool is_kind(const struct h_chunk *chunk, enum kind kind)
{
	return kind == ANY || chunk->grown == (kind == GROWN);
}

/* One that was given back. The first is long enough, but for the last of an area. */
static bool take_free(struct h_pool *pool, unsigned int class, size_t length, enum kind kind,
		      struct h_memory *memory)
{
	struct h_piece **at = &pool->free[class];
	struct h_piece *piece;

	while (*at && (!is_kind((*at)->chunk, kind) ||
		       room_at((*at)->chunk, (*at)->base, class) < length))
		at = &(*at)->next;
	piece = *at;
	if (!piece)
		return false;
	*at = piece->next;
	piece->chunk->pieces[piece->base / SMALLEST] |= PIECE_GIVEN;
	piece->chunk->given++;
	piece_is(piece->chunk, piece->base, class, memory);
	free(piece);
	return true;
}

/* In the areas that there are. */
static bool find_room(struct h_pool *pool, unsigned int class, size_t length, enum kind kind,
		      struct h_memory *memory)
{
	struct h_chunk *chunk;
	bool found;

	h__lock(&pool->manager->lock);
	found = take_free(pool, class, length, kind, memory);
	for (chunk = pool->chunks; chunk && !found; chunk = chunk->next)
		found = is_kind(chunk, kind) && cut(chunk, class, length, memory);
	h__unlock(&pool->manager->lock);
	return found;
}

/* The first piece is cut before another thread can. */
static int chunk_add(struct h_pool *pool, struct h_chunk *chunk, unsigned int class,
		     size_t length, struct h_memory *memory)
{
	bool found;

	h__lock(&pool->manager->lock);
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	pool->total += h_area_length(chunk->area);
	found = cut(chunk, class, length, memory);
	h__unlock(&pool->manager->lock);
	return found ? 0 : -ENOMEM;
}

/* area_lock held. Another thread may have added an area before. */
static int grow(struct h_pool *pool, unsigned int class, size_t length, enum kind kind,
		struct h_memory *memory)
{
	struct h_chunk *chunk;
	int err;

	if (find_room(pool, class, length, kind, memory))
		return 0;
	err = chunk_make(pool, class, length, kind == GROWN, &chunk);
	if (!err)
		return chunk_add(pool, chunk, class, length, memory);
	return find_room(pool, class, length, ANY, memory) ? 0 : err;
}

int h__pool_alloc(struct h_pool *pool, size_t length, bool grown, struct h_memory *memory)
{
	enum kind kind = grown ? GROWN : MADE_WITH;
	struct h_manager *m = pool->manager;
	unsigned int class;
	int err;

	if (!length)
		return -EINVAL;
	if (length > (size_t)SMALLEST << (H_MEMORY_CLASSES - 9))
		return -E2BIG;
	class = class_of(length);
	if (find_room(pool, class, length, kind, memory))
		return 0;
	/* Another thread may wait with it for who changes the device's tables. */
	err = h__change_lock(&m->area_lock);
	if (err)
		return err;
	err = grow(pool, class, length, kind, memory);
	h__unlock(&m->area_lock);
	return err;
}

static struct h_chunk *chunk_of(struct h_pool *pool, const void *addr,
				uint64_t *base)
{
	struct h_chunk *chunk;

	*base = 0;
	for (chunk = pool->chunks; chunk; chunk = chunk->next) {
		*base = (uintptr_t)addr - (uintptr_t)h_area_addr(chunk->area);
		if (*base < chunk->used)
			return chunk;
	}
	return NULL;
}

int h__pool_find(struct h_pool *pool, const void *addr,
		 struct h_memory *memory)
{
	struct h_chunk *chunk;
	unsigned char piece;
	uint64_t base;

	chunk = chunk_of(pool, addr, &base);
	if (!chunk || base % SMALLEST)
		return -EINVAL;
	piece = chunk->pieces[base / SMALLEST];
	if (!(piece & PIECE_BEGINS))
		return -EINVAL;
	if (!(piece & PIECE_GIVEN))
		return -EALREADY;
	piece_is(chunk, base, piece & PIECE_CLASS, memory);
	return 0;
}

void h__pool_free(struct h_pool *pool, const struct h_memory *memory)
{
	struct h_chunk *chunk;
	struct h_piece *piece;
	uint64_t base;

	if (!memory->addr)
		return;
	chunk = chunk_of(pool, memory->addr, &base);
	chunk->pieces[base / SMALLEST] &= (unsigned char)~PIECE_GIVEN;
	chunk->given--;
	piece = malloc(sizeof(*piece));
	if (!piece)
		return;		/* lost until the manager ends */
	piece->chunk = chunk;
	piece->base = base;
	piece->class = class_of(memory->length);
	piece->next = pool->free[piece->class];
	pool->free[piece->class] = piece;
}

/* ---- giving back ---- */

/* What nobody has a piece of, with manager->lock. */
static size_t unused(const struct h_pool *pool, enum kind kind)
{
	const struct h_chunk *chunk;
	size_t n = 0;

	for (chunk = pool->chunks; chunk; chunk = chunk->next)
		if (!chunk->given && is_kind(chunk, kind))
			n += h_area_length(chunk->area);
	return n;
}

static bool keeps_too_much(const struct h_pool *pool)
{
	size_t idle = unused(pool, ANY);

	return idle > KEEP_UNUSED && idle > pool->total - idle;
}

/* Of what kind there is too much, if of any. */
static bool what_to_trim(const struct h_pool *pool, bool all, enum kind *kind)
{
	*kind = all || keeps_too_much(pool) ? ANY : GROWN;
	return unused(pool, *kind) > (all ? 0 : KEEP_UNUSED);
}

static void forget_pieces(struct h_pool *pool, const struct h_chunk *chunk)
{
	struct h_piece **at, *piece;
	unsigned int class;

	for (class = 0; class < H_MEMORY_CLASSES; class++)
		for (at = &pool->free[class]; (piece = *at);) {
			if (piece->chunk != chunk) {
				at = &piece->next;
				continue;
			}
			*at = piece->next;
			free(piece);
		}
}

/* The largest of those that nobody has a piece of, or NULL if they are to stay. */
static struct h_chunk *take_out(struct h_pool *pool, bool all)
{
	struct h_chunk **at, **largest = NULL, *chunk;
	enum kind kind;

	if (!what_to_trim(pool, all, &kind))
		return NULL;
	for (at = &pool->chunks; *at; at = &(*at)->next)
		if (!(*at)->given && is_kind(*at, kind) &&
		    (!largest || h_area_length((*at)->area) >
						  h_area_length((*largest)->area)))
			largest = at;
	chunk = *largest;
	*largest = chunk->next;
	pool->total -= h_area_length(chunk->area);
	forget_pieces(pool, chunk);
	return chunk;
}

static void chunk_free(struct h_chunk *chunk)
{
	free(chunk->pieces);
	free(chunk);
}

/* area_lock held, until the chunk is of use again. */
static int chunk_end(struct h_pool *pool, struct h_chunk *chunk)
{
	int err = 0;

	if (chunk->tag >= 0)
		err = h_terminus_bind(pool->terminus, chunk->tag, NULL, 0, 0);
	if (err)
		return err;
	err = h_area_remove(chunk->area);
	if (!err)
		chunk_free(chunk);
	else if (chunk_bind(pool, chunk))
		chunk->tag = -1;
	return err;
}

/*
 * It has stayed with the device: then somebody may as well use it, from its beginning. Not one
 * that could not be bound again: it is full, and tried again with the next one.
 */
static void put_back(struct h_pool *pool, struct h_chunk *chunk)
{
	size_t length = h_area_length(chunk->area);

	memset(chunk->pieces, 0, length / SMALLEST);
	chunk->used = pool->terminus && chunk->tag < 0 ? length : 0;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	pool->total += length;
}

/* area_lock held. False if nothing more can be given back. */
static bool trim_one(struct h_pool *pool, bool all)
{
	struct h_manager *m = pool->manager;
	struct h_chunk *chunk;

	h__lock(&m->lock);
	chunk = take_out(pool, all);
	h__unlock(&m->lock);
	if (!chunk)
		return false;
	if (!chunk_end(pool, chunk))
		return true;
	h__lock(&m->lock);
	put_back(pool, chunk);
	h__unlock(&m->lock);
	return false;
}

/*
 * Nobody waits for it: not while that would wait for a thread that changes the tables, or
 * that adds an area, which may take minutes. There will be other calls.
 */
static void trim(struct h_pool *pool, bool all)
{
	struct h_manager *m = pool->manager;
	struct h_why why;
	enum kind kind;
	bool much;

	h__lock(&m->lock);
	much = what_to_trim(pool, all, &kind);
	h__unlock(&m->lock);
	if (!much || h__dev_changing(m->dev))
		return;
	if (!h__try_lock(&m->area_lock))
		return;
	h__why_keep(m->dev, &why);
	while (trim_one(pool, all))
		;
	h__unlock(&m->area_lock);
	h__why_restore(m->dev, &why);
}

void h__pool_trim(struct h_pool *pool)
{
	trim(pool, false);
}

void h__pool_trim_all(struct h_pool *pool)
{
	trim(pool, true);
}

void h__pool_exit(struct h_pool *pool)
{
	struct h_chunk *chunk, *next;
	struct h_piece *piece;
	unsigned int class;

	for (class = 0; class < H_MEMORY_CLASSES; class++)
		while ((piece = pool->free[class])) {
			pool->free[class] = piece->next;
			free(piece);
		}
	for (chunk = pool->chunks; chunk; chunk = next) {
		next = chunk->next;
		/* What cannot be given back now goes with the device. */
		if (chunk_end(pool, chunk))
			chunk_free(chunk);
	}
	pool->chunks = NULL;
}
