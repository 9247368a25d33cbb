// SPDX-License-Identifier: MIT
/* Items of a work queue. */
#include <stdlib.h>

#include "work/work.h"

/* ---- lists ---- */

void h__tasks_append(struct h_tasks *list, struct h_task *t)
{
	t->next = NULL;
	t->prev = list->last;
	if (list->last)
		list->last->next = t;
	else
		list->first = t;
	list->last = t;
	list->count++;
}

void h__tasks_prepend(struct h_tasks *list, struct h_task *t)
{
	t->prev = NULL;
	t->next = list->first;
	if (list->first)
		list->first->prev = t;
	else
		list->last = t;
	list->first = t;
	list->count++;
}

void h__tasks_remove(struct h_tasks *list, struct h_task *t)
{
	if (t->prev)
		t->prev->next = t->next;
	else
		list->first = t->next;
	if (t->next)
		t->next->prev = t->prev;
	else
		list->last = t->prev;
	list->count--;
}

/* ---- items ---- */

static uint64_t items(const struct h_work_queue *q)
{
	const struct h_work_counters *c = &q->counters;

	return c->added - c->done - c->failed;
}

/* One that is longer than all may be is taken by itself. */
bool h__work_is_full(const struct h_work_queue *q, size_t length)
{
	uint64_t room = q->attr.bytes > q->bytes ? q->attr.bytes - q->bytes : 0;

	return items(q) >= q->attr.items || (q->bytes && length > room);
}

int h__task_add(struct h_work_queue *q, const void *data, size_t length, uint64_t *id)
{
	struct h_task *t = malloc(sizeof(*t) + H_ITEM_BYTES + length);

	if (!t)
		return -ENOMEM;
	*t = (struct h_task) { .id = ++q->last_id, .length = length };
	if (length)
		memcpy(t->bytes + H_ITEM_BYTES, data, length);
	q->bytes += length;
	q->counters.added++;
	h__tasks_append(&q->waiting, t);
	if (id)
		*id = t->id;
	return 0;
}

void h__task_end(struct h_work_queue *q, struct h_task *t)
{
	q->bytes -= t->length;
	free(t);
}

void h__task_again(struct h_work_queue *q, struct h_task *t)
{
	if (t->deliveries < q->attr.deliveries || q->closing) {
		h__tasks_prepend(&q->waiting, t);
		return;
	}
	q->counters.failed++;
	if (q->attr.on_failed)
		q->attr.on_failed(t->id, t->bytes + H_ITEM_BYTES, t->length, q->attr.arg);
	h__task_end(q, t);
}
