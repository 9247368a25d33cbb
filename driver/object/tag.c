// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tags of a terminus: the send buffer areas it may send from (H 2.3).
 *
 * The table is as long as the highest tag that was ever bound needs, and moves when it grows.
 * The data path looks into it while it holds the terminus, and not between its sections: a
 * message under way has a copy of what its fragments resolved to. So whoever holds the
 * terminus may change the table and replace it.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/slab.h>

#include "hml.h"
#include "locked.h"
#include "trace.h"

#define FIRST_TAGS	8	/* length of a new table */

/* Two tables of one length, in one piece of memory. */
struct table {
	struct hml_view *views;
	struct hml_area **areas;
	u32 count;
};

static size_t table_bytes(u32 count)
{
	return count * (sizeof(struct hml_view) + sizeof(struct hml_area *));
}

static void table_free(const struct hml_term *t, const struct table *table)
{
	if (!table->count)
		return;
	hml_user_uncharge_small(t->device, t->payer, hml_price(table_bytes(table->count)));
	kvfree(table->views);
}

/* As long as @tag needs, all of it not bound. */
static int table_new(struct hml_context *c, u32 tag, struct table *table)
{
	u32 count = max_t(u32, roundup_pow_of_two(tag + 1), FIRST_TAGS);
	u32 price = hml_price(table_bytes(count));
	int err = hml_user_charge_small(c, price);

	if (err)
		return err;
	table->views = kvzalloc(table_bytes(count), GFP_KERNEL_ACCOUNT);
	if (!table->views) {
		hml_user_uncharge_small(c->device, hml_payer(c), price);
		return -ENOMEM;
	}
	table->areas = (void *)(table->views + count);
	table->count = count;
	return 0;
}

/* Context locked, terminus held. @table becomes the old one. */
static void swap_tables(struct hml_context *c, struct hml_term *t, struct table *table)
{
	const struct table old = { t->core.tags, t->areas, t->core.tag_count };

	hml_context_assert_locked(c);
	if (old.count) {
		memcpy(table->views, old.views, old.count * sizeof(*old.views));
		memcpy(table->areas, old.areas, old.count * sizeof(*old.areas));
	}
	t->core.tags = table->views;
	t->areas = table->areas;
	t->core.tag_count = table->count;
	*table = old;
}

/* No table grows for what is refused. */
static int check_area(struct hml_context *c, const struct hamlyn_terminus_bind *arg)
{
	struct hml_area *area = NULL;
	struct hml_view view;
	int err;

	mutex_lock(&c->lock);
	err = hml_area_view(c, arg->area, arg->base, arg->length, false, &area, &view);
	if (!err)
		area->users--;
	mutex_unlock(&c->lock);
	return err;
}

/*
 * Terminus held: nobody else makes it grow meanwhile. If there is no memory for it, the table
 * stays as it is.
 */
static int grow(struct hml_context *c, struct hml_term *t,
		const struct hamlyn_terminus_bind *arg)
{
	struct table table;
	int err;

	if (arg->tag < t->core.tag_count)
		return 0;
	err = check_area(c, arg) ?: table_new(c, arg->tag, &table);
	if (err)
		return err;
	mutex_lock(&c->lock);
	swap_tables(c, t, &table);
	mutex_unlock(&c->lock);
	table_free(t, &table);
	return 0;
}

/* Context locked, terminus held, and no message under way that uses the tag. */
static int swap_binding(struct hml_context *c, struct hml_term *t,
			const struct hamlyn_terminus_bind *arg)
{
	u32 tag = array_index_nospec(arg->tag, t->core.tag_count);
	struct hml_area *area = NULL;
	struct hml_view view = {};
	int err;

	hml_context_assert_locked(c);
	if (arg->area != HAMLYN_NONE) {
		err = hml_area_view(c, arg->area, arg->base, arg->length, false,
				    &area, &view);
		if (err)
			return err;
		t->bound++;
	}
	swap(t->areas[tag], area);
	t->core.tags[tag] = view;
	if (area) {
		area->users--;
		t->bound--;
	}
	return 0;
}

/* Terminus held. No message can have begun with a tag that is not bound. */
static int finish_use(struct hml_term *t, u32 tag)
{
	if (tag >= t->core.tag_count)
		return 0;
	tag = array_index_nospec(tag, t->core.tag_count);
	return t->core.tags[tag].length ? hml_term_finish(t) : 0;
}

/* Terminus held, until it returns. */
static int change(struct hml_context *c, struct hml_term *t,
		  const struct hamlyn_terminus_bind *arg)
{
	int err;

	/* Not bound, and no longer table is needed to leave it so. */
	if (arg->area == HAMLYN_NONE && arg->tag >= t->core.tag_count)
		return 0;
	err = finish_use(t, arg->tag) ?: grow(c, t, arg);
	if (err)
		return err;
	mutex_lock(&c->lock);
	err = swap_binding(c, t, arg);
	mutex_unlock(&c->lock);
	return err;
}

/*
 * The message under way may be long, so it ends without the context's lock.
 * If the terminus is destroyed meanwhile, that waits for us to let go, and
 * drops what we have bound.
 */
int hml_tag_bind(struct hml_context *c, const struct hamlyn_terminus_bind *arg)
{
	struct hml_term *t;
	int err;

	if (arg->tag >= HAMLYN_MAX_TAGS) {
		hml_explain(c, "tag %u: a terminus has tags 0 to %u", arg->tag,
			    HAMLYN_MAX_TAGS - 1);
		return -EINVAL;
	}
	if (arg->area == HAMLYN_NONE ? arg->base || arg->length : !arg->length)
		return -EINVAL;
	t = hml_term_get(c, arg->terminus);
	if (!t)
		return -ENOENT;
	err = hml_term_hold(t);
	if (err)
		goto out_put;
	err = change(c, t, arg);
	if (!err)
		trace_hamlyn_bind(t, arg);
	hml_term_release(t);
out_put:
	hml_term_put(t);
	return err;
}

/* Terminus held for good. Its areas are not its any more. */
void hml_tags_drop(struct hml_context *c, struct hml_term *t)
{
	u32 tag;

	hml_context_assert_locked(c);
	for (tag = 0; tag < t->core.tag_count; tag++)
		if (t->areas[tag])
			t->areas[tag]->users--;
}

/* Nobody looks at the table any more. */
void hml_tags_free(struct hml_term *t)
{
	const struct table table = { t->core.tags, t->areas, t->core.tag_count };

	table_free(t, &table);
}
