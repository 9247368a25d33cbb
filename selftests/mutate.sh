#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Takes out one check at a time and sees which tests notice. A check whose
# removal no test notices protects nobody from the next careless change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
	cat <<'EOT'
Usage: selftests/mutate.sh [--list | --check] [--where native|vm] [NAME...]

For each mutation (default: all): copies the sources, changes one line, builds,
runs the tests that should notice, and prints the names of those that do.
Fails if a mutation survives, or does not apply any more.

  --list          the mutations: name, where, tests, file
  --check         only see that every mutation applies; builds nothing
  --where PLACE   only those that are noticed in the unit tests and on the embedded
                  device (native), or on the kernel device (vm)

A program that reaches its limit of time has noticed nothing, unless the mutation is
named as one that makes programs hang.

Needs what "make check-vm KERNEL=6.1" needs. Only what has changed is built, only
the tests that matter are run, and one boot serves many mutants of the module:
about 10 s a mutation, more if one hangs or brings the kernel down.
EOT
}

# name, where, tests (unit_*, am-* or programs), file, sed expression
TABLE='
key            native unit_rx               driver/core/rx.c     s/if (unlikely(h->key != READ_ONCE(slot->key)))/if (0)/
bounds         native unit_rx               driver/core/rx.c     s/if (unlikely(!hml_view_covers(slot->data.length, h->offset, h->length)))/if (0)/
bounds-sum     native unit_rx               driver/core/nic.h    s/return offset <= length \&\& bytes <= length - offset;/return offset + bytes <= length;/
meta-index     native unit_rx               driver/core/rx.c     s/return likely(h->meta_index < slot->meta_count) ?/return 1 ?/
meta-room      native unit_rx               driver/core/rx.c     s/if (h->meta_length || h->meta_index)/if (0)/
packet-form    native unit_rx               driver/core/rx.c     s/if (unlikely(h->version != HAMLYN_PACKET_VERSION || h->reserved ||/if (unlikely(/
second-key     native unit_paranoid         driver/core/rx.c     s/if (!key || h->key != key)/if (!key)/
second-zero    native unit_paranoid         driver/core/rx.c     s/if (!key || h->key != key)/if (h->key != key)/
second-low     native unit_paranoid         driver/core/rx.c     s/if (h->offset < low ||/if (/
second-high    native unit_paranoid         driver/core/rx.c     s/!hml_view_covers(high, h->offset, h->length)/0/
one-shot       native unit_paranoid         driver/core/rx.c     s/if (!(state \& HAMLYN_META_ARMED) ||/if (/
one-shot-end   native unit_paranoid         driver/core/rx.c     s/last = next == (HAMLYN_META_ARMED | HAMLYN_META_COMPLETE);/last = complete;/
one-shot-alone native unit_paranoid         driver/core/rx.c     s/^\treturn smp_load_acquire(\&m->state) == HAMLYN_META_ARMED .*/\treturn one_shot_enter(m) ||/
one-shot-keep  native unit_paranoid         driver/core/rx.c     s/HAMLYN_META_ARMED, ONE_SHOT_ALONE) ==/HAMLYN_META_ARMED, HAMLYN_META_ARMED + 1) ==/
one-shot-again native unit_paranoid         driver/core/rx.c     s/^\treturn smp_load_acquire(\&m->state) == HAMLYN_META_ARMED .*/\treturn 1 ||/
one-shot-door  native unit_paranoid         driver/core/rx.c     s/^\treject = admit_secondary(m, h);/\treject = -1;/
fast-paranoid  native unit_paranoid         driver/core/rx.c     s/if (slot->mode != HAMLYN_SLOT_NORMAL)$/if (0)/
live           native unit_rx               driver/core/rx.c     s/if (!smp_load_acquire(\&slot->live))/if (0)/
tag-range      native unit_tx               driver/core/tx.c     s/if (unlikely(tag >= t->tag_count))/if (0)/
tag-bound      native unit_tx               driver/core/tx.c     s/if (!area->length)/if (0)/
fragment       native unit_tx               driver/core/tx.c     s/if (!hml_view_covers(area->length, p->offset, p->length))/if (0)/
trb-flags      native unit_tx               driver/core/tx.c     s/if (trb->flags & ~HAMLYN_TRB_FLAGS || /if (/
plain-options  native unit_tx               driver/core/tx.c     s/if (READ_ONCE(\*(const options_t \*)&trb->meta_length))/if (0)/
plain-rest     native unit_tx               driver/core/tx.c     s/return !(READ_ONCE(trb->word) | READ_ONCE(trb->delta) |/return 1 || !(READ_ONCE(trb->word) | READ_ONCE(trb->delta) |/
plain-entry    native unit_tx               driver/core/tx.c     s/if (unlikely(length > t->entry_size - sizeof(\*entry) ||/if (unlikely(/
plain-packet   native unit_tx               driver/core/tx.c     s/^\t\t     length > nic->packet_size))/\t\t     0))/
plain-paused   native unit_tx               driver/core/tx.c     s/if (unlikely(t->sender.guard.until || t->busy ||/if (unlikely(t->busy ||/
plain-again    native unit_tx               driver/core/tx.c     s/\.length = length,/.length = READ_ONCE(entry->length),/
told-late      native unit_tx               driver/core/tx.c     s/if (unlikely(t->head - told > t->mask \/ 2)) {/if (0) {/
offset-wrap    native unit_tx               driver/core/tx.c     s/if (m->header.offset > U64_MAX - sent)/if (0)/
sequence       native unit_tx               driver/core/tx.c     s/return smp_load_acquire(&trb->sequence) ==/return smp_load_acquire(\&trb->sequence) >=/
nq-full        native unit_notify           driver/core/notify.c s/if (unlikely(used > nq->mask)) {/if (0) {/
nq-consumer    native unit_notify           driver/core/notify.c s/if (used > nq->mask + 1)/if (0)/
ticket-key     native unit_rx               driver/core/rx.c     s/ticket_key == READ_ONCE(slot->ticket_key) ?/1 ?/
ticket-only    native unit_rx               driver/core/rx.c     s/if (slot->flags \& HAMLYN_SLOT_TICKET_ONLY)$/if (0)/
ticket-index   native unit_ticket           driver/core/tx.c     s/if (trb->ticket >= t->ticket_count)/if (0)/
ticket-empty   native unit_ticket           driver/core/tx.c     s/if (!k->key)/if (0)/
ticket-range   native unit_ticket           driver/core/tx.c     s/if (trb->offset < k->base ||/if (0 \&\&/
ticket-flag    native unit_tx               driver/core/tx.c     s/(trb->ticket \&\& !(trb->flags & HAMLYN_TRB_TICKET)))/0)/
guard-pause    native unit_guard            driver/core/guard.c  s/WRITE_ONCE(g->until, until);/;/
guard-burst    native unit_guard            driver/core/guard.c  s/full - now <= HML_GUARD_SECOND_NS/full - now <= 2 * HML_GUARD_SECOND_NS/
guard-all-free native unit_guard            driver/core/guard.c  s/if (!rate)/if (0)/
guard-begin    native unit_guard            driver/core/guard.c  s/guard->until = hml_bucket_until(bucket, now);/guard->until = 0;/
guard-round    native unit_guard            driver/core/guard.c  s/return (HML_GUARD_SECOND_NS + rate - 1) \/ rate;/return HML_GUARD_SECOND_NS \/ rate;/
guard-forget   native unit_guard            driver/core/guard.c  s/return READ_ONCE(b->full) <= now;/return true;/
guard-save     native unit_guard            driver/core/guard.c  s/(was > now ? was : now)/was/
guard-asked    native unit_guard            driver/core/tx.c     s/hml_guard_paused(nic, &t->sender.guard))/0)/
guard-guess    native unit_guard            driver/core/rx.c     s/if (guessed(\&h, reject) \&\& !sender->guessed) {/if (0) {/
unread-told    native unit_rx,unit_paranoid  driver/core/rx.c     s/if (unlikely(!place(nic, slot, h, payload))) {/if (!place(nic, slot, h, payload) \&\& 0) {/
unread-leave   native unit_paranoid         driver/core/rx.c     /if (unlikely(!place_all(/,/return -1;/s/^\t\tone_shot_refused(nic, slot, m, h, sender);/\t\t;/
unread-rest    native unit_tx               driver/core/tx.c     s/if (last || (HML_PORT_UNREADABLE \&\& unlikely(t->sender.unreadable)))/if (last)/
unread-status  native unit_tx               driver/core/tx.c     s/unlikely(t->sender.unreadable) ? -EIO : 0;/0 ? -EIO : 0;/
guard-late     native unit_guard            driver/core/rx.c     s/if (!hml_port_knew(nic, \&h, sender))/if (1)/
guard-ticket   native unit_guard            driver/core/rx.c     s/ \&\& !(h->flags \& HAMLYN_PACKET_TICKET);/;/
shm-late       native stream                libhamlyn/src/embedded/shm_watch.c s/remember(guesser_of(who), k->slot, k->key);/;/
wire-version   native unit_wire               driver/core/wire.c   s/if (w->version\[0\] != HML_WIRE_VERSION)/if (0)/
wire-type      native unit_wire               driver/core/wire.c   s/if (!f->type || f->type >= HML_WIRE_TYPES)/if (!f->type)/
wire-header    native unit_wire               driver/core/wire.c   s/f->header_bytes > bodies\[i\].most)/0)/
wire-payload   native unit_wire               driver/core/wire.c   s/return f->payload_bytes ? HML_WIRE_BAD_LENGTH : HML_WIRE_OK;/return HML_WIRE_OK;/
wire-long      native unit_wire               driver/core/wire.c   s/return f->payload_bytes > packet_size ?/return 0 ?/
wire-flags     native unit_wire               driver/core/wire.c   s/if (flags \& ~HAMLYN_PACKET_FLAGS)/if (0)/
wire-agree     native unit_wire               driver/core/wire.c   s/ || f->header_bytes != data_body(flags, meta_length))/)/
wire-metadata  native unit_wire               driver/core/wire.c   s/if (meta_length > HAMLYN_MAX_METADATA || /if (/
wire-hello     native unit_wire               driver/core/wire.c   s/if (!rx->open || f->type == HML_WIRE_HELLO)/if (f->type == HML_WIRE_HELLO)/
wire-again     native unit_wire               driver/core/wire.c   s/if (rx->open || f->type != HML_WIRE_HELLO)/if (f->type != HML_WIRE_HELLO)/
wire-epoch     native unit_wire               driver/core/wire.c   s/if (f->epoch != rx->epoch)/if (0)/
wire-next      native unit_wire               driver/core/wire.c   s/if (f->sequence != rx->sequence)/if (0)/
wire-old       native unit_wire               driver/core/wire.c   s/if (is_old(rx, f->epoch, hello->incarnation))/if (0)/
wire-magic     native unit_wire               driver/core/wire.c   s/if (get64(w->magic) != HML_WIRE_MAGIC)/if (0)/
wire-fabric    native unit_wire               driver/core/wire.c   s/if (memcmp(theirs->fabric_id, .*/if (0)/
wire-same      native unit_wire               driver/core/wire.c   s/if (theirs->host == ours->host)/if (0)/
wire-host      native unit_wire               driver/core/wire.c   s/if (theirs->host != host)/if (0)/
wire-size      native unit_wire               driver/core/wire.c   s/if (theirs->packet_size != ours->packet_size)/if (0)/
wire-call      native unit_wire               driver/core/wire.c   s/if (call->name_length > rest || rest - call->name_length > HAMLYN_MAX_CALL)/if (0)/
wire-name      native unit_wire               driver/core/wire.c   s/if (name\[i\] <= .*/if (0)/
wire-answer    native unit_wire               driver/core/wire.c   s/if (answer->status >= HML_WIRE_ANSWERS)/if (0)/
wire-unsaid    native unit_wire               driver/core/wire.c   s/if (answer->length)$/if (0)/
wire-damaged   native unit_wire               driver/core/wire.c   s/ || h->meta_length > HAMLYN_MAX_METADATA))/))/
link-down      native unit_link             driver/core/link.c   s/if (READ_ONCE(nic->link->down))/if (0)/
link-unfed     native unit_link             driver/core/link.c   s/if (!watchdog_ms)/if (1)/
link-sender    native unit_link             driver/core/tx.c     s/if (path == HML_PATH_NONE || !hml_link_up(nic))/if (path == HML_PATH_NONE)/
link-receiver  native unit_link             driver/core/tx.c     s/if (hml_link_up(to))/if (1)/
link-own       vm conformance_adversary     driver/core/tx.c     s/if (hml_link_up(to))/if (to == from || hml_link_up(to))/
shm-rekey      native conformance_beyond    libhamlyn/src/embedded/shm_device.c s/WRITE_ONCE(rec->slot.key, keys\[0\]);//
place-leftover native reuse                 libhamlyn/src/manager/place.c s/^\tmemset(p->data.addr, 0, p->data.length);//
group-leftover native reuse                 libhamlyn/src/message/group.c s/^\tmemset(g->r.data, 0, g->length);//
datagram-erase native datagram              libhamlyn/src/message/datagram.c s/memset(data + d->here.offset, 0, d->here.length);/;/
datagram-all   native datagram              libhamlyn/src/message/datagram.c s/memset(data, 0, d->length);/;/
datagram-alone native datagram              libhamlyn/src/message/datagram.c s/told->length == h__read_once(&entry->length) \&\&/1 \&\&/
datagram-check native datagram              libhamlyn/src/message/datagram.c s/good = check == check_word(.*);/good = true;/
datagram-end   native datagram              libhamlyn/src/message/datagram.c s/(bytes != d->partial \&\& bytes <= d->length)/bytes != d->partial/
datagram-live  native datagram              libhamlyn/src/message/datagram.c s/return h__grace_needed(dev) \&\& h__grace_over(dev, &d->grace, about);/return h__grace_needed(dev);/
grace-dead     native datagram              libhamlyn/src/embedded/shm_table.c s/^\treturn ask \&\& (!owner || !h__shm_alive(dev, owner - 1));/\treturn false;/
stream-debt    native channel               libhamlyn/src/stream/stream_due.c s/^\th_receiver_owes(&r->r, r->late || r->fin_due || r->old_due);/\th_receiver_owes(\&r->r, false);/
gather-left    native gather                libhamlyn/src/message/gather.c s/over = m->left || m->gone;/over = false;/
release-long   native channel               libhamlyn/src/channel/channel_long.c s/ || ch->longs\[m->number\].serial != m->serial//
release-record native channel               libhamlyn/src/stream/stream_receive.c s/if (a->here != H_GIVEN_BACK) {/if (1) {/
release-owner  native channel               libhamlyn/src/channel/channel_receive.c s/if (m->held \&\& m->held != ch->id)/if (0)/
shm-claim      native stream,channel        libhamlyn/src/embedded/shm_watch.c s/if (hw->claim \&\& slot->claimed)/if (0)/
seed-claim     native stream,channel        libhamlyn/src/stream/stream_credit.c s/return s->claims \&\& s->generation == 1/return 0/
free-inside    native manager               libhamlyn/src/manager/memory.c s/if (!(piece \& PIECE_BEGINS))/if (0)/
grow-paid      native capacity              libhamlyn/src/stream/stream_arrive.c s/ \&\& r->paid >= all / /
grow-budget    native capacity              libhamlyn/src/manager/budget.c s/if (bytes > b->most - b->taken)/if (0)/
spare-age      native capacity             libhamlyn/src/manager/budget.c s/	if (are_old(b))/	if (0)/
spare-charge   native capacity             libhamlyn/src/channel/channel_receive.c s/in->charged = in->room;/h__budget_give(ch->manager, in->room);/
shed-offer     native shed                 libhamlyn/src/stream/stream_shed.c s/return r->quiet > r->patience || (pressed/return 0 \&\& (pressed/
shed-fits      native shed                 libhamlyn/src/stream/stream_send.c s/ || length <= f.buffer;/ || 1;/
shed-collected native shed                 libhamlyn/src/stream/stream_credit.c s/if (h__stage_flush(s, 0, 0, H_NOWAIT))/if (0)/
shed-again     native stream               libhamlyn/src/stream/stream_credit.c s/ \&\& s->sent - s->shrunk >= s->entries;/;/
stage-reserve  native capacity              libhamlyn/src/stream/stream_sender.c s/err = h__stage_reserve(s);/err = 0;/
own-tags       native capacity              libhamlyn/src/manager/memory.c s/if (h__terminus_free_tags(pool->terminus) > own)/if (h__terminus_free_tags(pool->terminus))/
free-twice     native manager               libhamlyn/src/manager/memory.c s/if (!(piece \& PIECE_GIVEN))/if (0)/
dispatch-bound native manager               libhamlyn/src/manager/ready.c s/while (rounds-- \&\& h_manager_poll/while ((void)rounds, h_manager_poll/
unread-replies native rendezvous            libhamlyn/src/rendezvous/rendezvous_guests.c s/of_user >= UNREAD_OF_USER/0/
slow-close     native rendezvous            libhamlyn/src/rendezvous/rendezvous_close.c s/later = make_room();/later = make_room() \&\& 0;/
far-wrap       native bridge                libhamlyn/src/embedded/shm_far.c s/if (!skip \&\& least > left)/if (0)/
change-limit   native stuck_tables          libhamlyn/src/low/change.c s/return limit.err ? \&limit : NULL;/return NULL;/
change-accept  native stuck_tables          libhamlyn/src/rendezvous/rendezvous_accept.c s/int err = m \&\& h__change_limited() ? /int err = 0 ? /
change-close   native stuck_tables          libhamlyn/src/manager/leaving.c s/if (m->ends || !h__change_limited() ||/if (1 ||/
nq-counted     native nq_bias               libhamlyn/src/embedded/shm_nq.h s/return (s32)(h__shm_nq_share(p) - (cursor + 1)) >= 0;/h__shm_nq_share(p); return false;/
nq-ending      native nq_bias               libhamlyn/src/embedded/shm_bias.c s/return bias != SHM_NQ_ENDING;/return true;/
grace-goes-on  native busy_segment                 libhamlyn/src/embedded/shm_table.c s/if (g \&\& g->about != about)/if (g)/
shm-owner      native hostile_segment       libhamlyn/src/embedded/shm_file.c s/if (st.st_uid != geteuid())$/if (0)/; s/if (st.st_mode & 077)$/if (0)/
lock-lend      native priority              libhamlyn/src/low/lock.c s/err = lock_asleep(word, self, deadline_ns);/err = lock_alone(word, self, deadline_ns);/
fd-standard    native surroundings          libhamlyn/src/low/dev.c s/if (fd > STDERR_FILENO)/if (1)/
stream-gone    native requests              libhamlyn/src/stream/stream_arrive.c s/(h__unlikely(r->gone) \&\& r->high == r->last)/0/
shm-left       native syscall_faults        libhamlyn/src/embedded/shm_file.c s/if ((flags \& O_CREAT) \&\& .*$/if (0)/
shm-unjoined   native syscall_faults        libhamlyn/src/embedded/shm_segment.c s/^\tif (h__shm_is_left_behind(dev->fd))$/\tif (0)/
request-id     native requests             libhamlyn/src/channel/channel_receive.c s/kind == REPLY \&\& w->id == h__message_id(m) \&\&/kind == REPLY \&\&/
request-late   native requests             libhamlyn/src/channel/channel_request.c s/while (\*at \&\& (\*at)->id != id)/while (0)/
request-drop   native requests             libhamlyn/src/channel/channel_receive.c s/int kind = in->drop ? NOTHING :/int kind =/
request-bound  native requests             libhamlyn/src/channel/channel_request.c s/return h__read_once(&ch->stored_bytes) >= most ||/(void)most; return/
request-count  native requests             libhamlyn/src/channel/channel_request.c s/h__read_once(&ch->stored_count) >= H_MOST_STORED/0/
request-over   native requests             libhamlyn/src/channel/channel_request.c s/ \&\& !h__stream_is_over(ch->receiver)//
request-card   native requests             libhamlyn/src/rendezvous/rendezvous.c s/if (h__get(card + KIND, 4) != h->kind)/if (0)/
note-label     native requests             libhamlyn/src/channel/channel_receive.c s/if (!(label \& H_LABEL_ID))/if (0)/
note-more      native requests             libhamlyn/src/stream/stream_arrive.c s/if (note.more \& H_MORE_LABELLED)/if (0)/
note-credits   native stream                libhamlyn/src/stream/stream_arrive.c s/if (bytes_less(r->credit_sent, counts) \& ~0x01010101u)/if (0)/
note-flags     native stream                libhamlyn/src/stream/stream_arrive.c s/if (note.flags & ~H_NOTE_FLAGS)/if (0)/
note-empty     native stream                libhamlyn/src/stream/stream_arrive.c s/(!r->messages || a->length))/a->length)/
note-length    native stream                libhamlyn/src/stream/stream_arrive.c s/if (length > g->buffer) {/if (0) {/
note-start     native stream                libhamlyn/src/stream/stream_arrive.c s/if (!(note.flags & H_NOTE_START) || /if (/
note-number    native stream                libhamlyn/src/stream/stream_arrive.c s/ || note.number != r->high)/)/
hello-twice    native stream                libhamlyn/src/stream/stream_arrive.c s/if (r->connected || length != H_SEED_BYTES)/if (length != H_SEED_BYTES)/
hello-length   native stream                libhamlyn/src/stream/stream_arrive.c s/if (r->connected || length != H_SEED_BYTES)/if (r->connected)/
publish-hello  native publish               libhamlyn/src/publish/publisher_reader.c s/if (r->welcome || m->length/if (m->length/
credit-bound   native stream                libhamlyn/src/stream/stream_credit.c s/if (released - s->released > sent - s->released)/if (0)/
credit-short   native stream                libhamlyn/src/stream/stream_credit.c s/if (length < H_CREDIT_SHORT ||/if (/
credit-long    native stream                libhamlyn/src/stream/stream_credit.c s/(flags & (H_CREDIT_SEED | H_CREDIT_SMALLER) \&\& length < H_CREDIT_LONG)) {/0) {/
credit-fixed   native stream                libhamlyn/src/stream/stream_credit.c s/^\tif (s->fixed) {/\tif (0) {/
credit-smaller native stream                libhamlyn/src/stream/stream_credit.c s/^\t\treturn buffer > s->buffer;/\t\treturn true;/
seed-sense     native stream,rendezvous     libhamlyn/src/stream/stream_credit.c s/if (!seed_makes_sense(&f) || /if (/
seed-credit    native rendezvous            libhamlyn/src/stream/stream_arrive.c s/if (f.entries != H_CREDITS || /if (/
seed-check     native rendezvous            libhamlyn/src/manager/seed.c  s/h__get(p + CHECK, 4) != h__check_word(p, CHECK))/0)/
seed-version   native rendezvous            libhamlyn/src/manager/seed.c  s/if (p\[4\] != SEED_VERSION)/if (0)/
seed-kind      native stream,rendezvous     libhamlyn/src/manager/seed.c  s/p\[KIND\] != kind || //
card-check     native rendezvous            libhamlyn/src/rendezvous/rendezvous.c s/if (h__get(card + CHECK, 4) != h__check_word(card, CHECK))/if (0)/
card-kind      native rendezvous            libhamlyn/src/rendezvous/rendezvous.c s/if (h__get(card + KIND, 2) != (h->kind \& 0xffff))/if (0)/; s/if (h__get(card + KIND, 4) != h->kind)/if (0)/
said-version   native rendezvous            libhamlyn/src/rendezvous/rendezvous_message.c s/|| s->other_version ||/||/
reply-what     native rendezvous            libhamlyn/src/rendezvous/rendezvous_connect.c s/(s->what != H_SAYS_REPLY || s->status/(s->status/
am-sequence    native am-engine             libhamlyn/am/arrive.c s/if (am_unlikely(p->seq != r->seq + 1))/if (0)/
am-duplicate   native am-engine             libhamlyn/am/arrive.c s/p->seq != r->seq + 1))/p->seq != r->seq + 1 \&\& p->seq != r->seq))/
am-too-new     native am-engine             libhamlyn/am/arrive.c s/am_unlikely(p->seq != r->seq + 1)/(int32_t)(p->seq - r->seq) <= 0/
am-reflect     native am-engine             libhamlyn/am/arrive.c s/if (p->seq == r->seq)$/if (0)/
am-reflect-old native am-engine             libhamlyn/am/arrive.c s/if (p->seq == r->seq)$/if (1)/
am-reply-seq   native am-engine             libhamlyn/am/arrive.c s/r->state != AM_COUNTING || p->seq != r->seq/r->state != AM_COUNTING/
am-reply-state native am-engine             libhamlyn/am/arrive.c s/r->state != AM_COUNTING || p->seq != r->seq/p->seq != r->seq/
am-header-sum  native am-engine             libhamlyn/am/arrive.c s/p->check != am_header_sum(p, am->self, reply)/0/
am-header-dest native am-engine             libhamlyn/am/wire.h   s/where = (uint64_t)to << 1/where = 0 * (uint64_t)to/
am-header-way  native am-engine             libhamlyn/am/wire.h   s/to << 1 | !!reply;/to << 1 | (0 \& reply);/
am-sum-memory  native am-engine             libhamlyn/am/arrive.c s/place(am, p, (unsigned char \*)\*data + p->args\[3\], from)/(place(am, p, (unsigned char *)*data + p->args[3], from), 1)/
am-sum-medium  native am-engine             libhamlyn/am/arrive.c s/place(am, p, am->scratch, from)/(place(am, p, am->scratch, from), 1)/
am-sum-got     native am-engine             libhamlyn/am/arrive.c s/place(am, p, get->to + p->args\[0\], from)/(place(am, p, get->to + p->args[0], from), 1)/
am-suspect     native am-engine             libhamlyn/am/wire.h   s/am->summed || send->suspect/am->summed/
am-settle      native am-engine             libhamlyn/am/wire.h   s/if (am_unlikely(send->handle >= 0 \&\& send->size > am->terminus->inline_max))/if (0)/
am-settle-short native am-engine            libhamlyn/am/wire.h   s/send->handle >= 0 \&\& send->size > am->terminus->inline_max/send->handle >= 0/
am-settle-request native am-engine          libhamlyn/am/request.c /^void am_request_issue/,/^}/s/am_wire_settle(am, r);/;/
am-settle-reply native am-engine            libhamlyn/am/reply.c  /^int am_reply_send/,/^}/s/am_wire_settle(am, r);/;/
am-settle-owe  native am-engine             libhamlyn/am/reply.c  /^void am_reply_owe/,/^}/s/am_wire_settle(am, r);/;/
am-medium-copy native am-engine             libhamlyn/am/arrive.c s/\*data = am->scratch;/;/
am-defer       native am-engine             libhamlyn/am/arrive.c s/am->defer = (p->kind.*$/am->defer = 0;/
am-ack-seq     native am-engine             libhamlyn/am/arrive.c s/(r->seq & AM_SEQ24) == (ack & AM_SEQ24)/1/
am-ack-state   native am-engine             libhamlyn/am/arrive.c s/if (instance < am->depth && r->state == AM_COUNTING &&/if (instance < am->depth \&\&/
am-ack-instance native am-engine            libhamlyn/am/arrive.c s/if (instance < am->depth && r->state == AM_COUNTING &&/if (r->state == AM_COUNTING \&\&/
am-ack-count   native am-engine             libhamlyn/am/arrive.c s/i < p->length && i < AM_MAX_ACKS - 1/i < AM_MAX_ACKS - 1/
am-ack-bound   native am-engine             libhamlyn/am/arrive.c s/i < p->length && i < AM_MAX_ACKS - 1/i < p->length/
am-owed-idle   native am-engine             libhamlyn/am/serve.c  s/am_acks_flush(am);/;/
am-owed-half   native am-engine             libhamlyn/am/reply.c  s/>= (am->depth + 1) \/ 2/> am->depth/
am-owed-sleep  native am-engine             libhamlyn/am/gam.c    s/am_acks_flush(am);/;/
am-owed-again  native am-engine             libhamlyn/am/reply.c  s/if (peer->owed & 1U << instance)/if (0)/
am-timeouts    native am-engine             libhamlyn/am/serve.c  s/if (am->counting && am->reliable)/if (0)/
am-walk        native am-engine             libhamlyn/am/serve.c  s/if (++am->check_instance >= am->depth)/if (1)/
am-walk-all    native am-engine             libhamlyn/am/serve.c  s/if (++am->check_peer >= am->procs)/if (1)/
am-back-off    native am-engine             libhamlyn/am/serve.c  s/(int64_t)(am->timeout << (r->tries/(int64_t)(am->timeout << 0 * (r->tries/
am-give-up     native am-engine             libhamlyn/am/serve.c  s/return (int64_t)(am->now - r->first) > (int64_t)am->give_up;/return 0;/
am-whole       native am-engine             libhamlyn/am/arrive.c s/return !\*missing;/return 1;/
am-whole-one   native am-engine             libhamlyn/am/arrive.c s/if (!is_memory(p->kind) || p->length == total)/if (!is_memory(p->kind))/
am-transfer    native am-engine             libhamlyn/am/request.c s/!--peer->segments\[r->transfer\])/--peer->segments[r->transfer] + 1)/
am-transfer-own native am-engine            libhamlyn/am/bulk.c   s/peer->free_transfers &= peer->free_transfers - 1;/;/
am-got-offset  native am-engine             libhamlyn/am/arrive.c s/return p->args\[0\] <= get->total \&\&/return 1 \&\&/
am-got-length  native am-engine             libhamlyn/am/arrive.c s/p->length <= get->total - p->args\[0\] \&\&/1 \&\&/
am-got-again   native am-engine             libhamlyn/am/bulk.c   s/if (!get->active || packet->length > get->missing)/if (0)/
am-give-length native am-engine             libhamlyn/am/bulk.c   s/packet->args\[1\] < am->page ?/1 ?/
am-good-source native am-engine             libhamlyn/am/arrive.c s/p->source != source || //
am-good-self   native am-engine             libhamlyn/am/arrive.c s/source == am->self || *$//
am-good-instance native am-engine           libhamlyn/am/arrive.c s/p->instance != instance || //
am-good-kind   native am-engine             libhamlyn/am/arrive.c s/ || kind >= AM_KINDS)/)/
am-good-ack    native am-engine             libhamlyn/am/arrive.c s/return reply && size == AM_HEADER;/return 1;/
am-good-way    native am-engine             libhamlyn/am/arrive.c s/if (kind >= AM_GET \&\& kind == (reply ? AM_GET : AM_GOT))/if (0)/
am-good-length native am-engine             libhamlyn/am/arrive.c s/return size - AM_HEADER == p->length && p->length <= am->page;/return 1;/
am-index       native am-engine             libhamlyn/am/arrive.c s/index >= 2 \* all || size < AM_HEADER/size < AM_HEADER/
am-find-module native am-engine             libhamlyn/am/address.c s/if (am_unlikely(i >= count))/if (0)/
am-find-code   native am-engine             libhamlyn/am/address.c /address = modules\[i\].base/,/^}/s/if (am_unlikely(!in_module(i, address)))/if (0)/
am-lost        native am-engine             libhamlyn/am/request.c s/return am_likely(!am->peers\[dest\].lost) ? 0 : am_lost_error(am, dest);/return 0;/
am-lost-wait   native am-engine             libhamlyn/am/request.c s/if (am_unlikely(am->peers\[dest\].lost))/if (0)/
am-lost-gets   native am-engine             libhamlyn/am/serve.c  s/if (am->gets\[i\].active == lost + 1)/if (0)/
am-lost-range  native am-engine             libhamlyn/am/arrive.c s/if (entry->data < am->procs)/if (1)/
am-uncork      native am-engine             libhamlyn/am/bulk.c   s/if (am->terminus->corked) {/if (0) {/
am-sync        native am-engine             libhamlyn/am/sync.c   s/while (am->counting || am->stores)/while (am->stores)/
am-own-scratch native am-engine             libhamlyn/am/reply.c  s/data = am->scratch + am->page;/;/
am-enabled     native am-rules              libhamlyn/am/request.c s/if (am_unlikely(!am->enabled))/if (0)/
am-in-request  native am-rules              libhamlyn/am/request.c s/if (am_unlikely(am->context == AM_IN_REQUEST))/if (0)/
am-in-reply    native am-rules              libhamlyn/am/request.c s/if (am_unlikely(am->context != AM_MAIN))/if (0)/
am-dest        native am-rules              libhamlyn/am/request.c s/if (am_unlikely((uint32_t)dest >= am->procs))/if (0)/
am-reply-enabled native am-rules            libhamlyn/am/reply.c  s/if (am_unlikely(!am->enabled))/if (0)/
am-reply-where native am-rules              libhamlyn/am/reply.c  s/if (am_unlikely(am->context != AM_IN_REQUEST))/if (0)/
am-reply-once  native am-rules              libhamlyn/am/reply.c  s/if (am_unlikely(am->replied))/if (0)/
am-reply-dest  native am-rules              libhamlyn/am/reply.c  s/if (am_unlikely(dest != HPAM_reply_dest))/if (0)/
shm-watch-fd   native upper_errors                libhamlyn/src/embedded/shm_watch.c s/if (!ticket \&\& hml_bucket_until/if (hml_bucket_until/
shm-watch-held native upper_errors                libhamlyn/src/embedded/shm_watch.c s/if (!ticket \&\& hml_bucket_until/if (0 \&\& hml_bucket_until/
am-watch       native am-killed             libhamlyn/am/start.c  s/return p != am->self &&/return 0 \&\&/
am-program     native am-programs           libhamlyn/am/start.c  s/if (theirs.program != id->program)/if (0)/
am-libraries   native am-libraries          libhamlyn/am/start.c  s/if (theirs.libraries != id->libraries)/if (0)/
am-state-free  native unit_am_state,am-engine libhamlyn/am/state.c s/\[AM_COUNTING\] = { X, X, X, AM_TRANSMIT, AM_FREE/[AM_COUNTING] = { X, X, X, AM_TRANSMIT, X/
am-state-new   native unit_am_state,am-engine libhamlyn/am/state.c s/AM_TRANSMIT, AM_FREE, X, X, AM_FREE },/AM_TRANSMIT, X, X, X, AM_FREE },/
kernel-key     vm protection                driver/core/rx.c     s/if (unlikely(h->key != READ_ONCE(slot->key)))/if (0)/
kernel-bounds  vm protection                driver/core/rx.c     s/if (unlikely(!hml_view_covers(slot->data.length, h->offset, h->length)))/if (0)/
kernel-trb     vm hostile_wq                driver/core/tx.c     s/if (trb->flags & ~HAMLYN_TRB_FLAGS || /if (/
kernel-copy    vm hostile_wq                driver/core/tx.c     s/hml_tx_flat(nic, t, &trb, meta, tail)/hml_tx_flat(nic, t, (struct hamlyn_trb *)entry, meta, tail)/
kernel-range   vm hostile_ticket            driver/core/tx.c     s/if (trb->offset < k->base ||/if (0 \&\&/
kernel-index   vm hostile_ticket            driver/core/tx.c     s/if (trb->ticket >= t->ticket_count)/if (0)/
kernel-empty   vm hostile_ticket            driver/core/tx.c     s/if (!k->key)/if (0)/
kernel-ticket  vm hostile_ticket            driver/core/rx.c     s/ticket_key == READ_ONCE(slot->ticket_key) ?/1 ?/
kernel-only    vm hostile_ticket            driver/core/rx.c     s/if (slot->flags \& HAMLYN_SLOT_TICKET_ONLY)$/if (0)/
kernel-guess   vm hostile_guess             driver/core/rx.c     s/if (guessed(\&h, reject) \&\& !sender->guessed) {/if (0) {/
kernel-late    vm hostile_guess             driver/watch/watch.c s/hml_watch_remember(w, arg->key);/;/
kernel-forget  vm hostile_guess             driver/watch/watch.c s/^\thml_watch_forget(w);/\t;/
watch-late     vm hostile_guess             driver/watch/watch.c s/if (!hml_watch_knew(\&c->user->known, arg->host, arg->slot, arg->key))/if (1)/
known-wrong    vm hostile_guess             driver/watch/watch.c /^int hml_watch_arm_on/,/^}/s/^\tif (reject >= 0)$/\tif (reject >= 0 \&\& (hml_watch_remember(w, arg->key), 1))/
bridge-stranger native bridge               tools/hamlyn-bridge/life.c s/if (!from_a_peer(b, \&from) || /if (/
bridge-user    native bridge                tools/hamlyn-bridge/origin.c s/ \&\& uid == geteuid();/;/
bridge-closed  native bridge                tools/lib/sock_owner.c s/ || !answer.is.idiag_inode)/)/
bridge-held    native bridge                tools/hamlyn-bridge/inbox.c s/if (held_back(p, u))/if (0)/
held-wait      vm held                     libhamlyn/src/manager/leaving.c s/if (!h__read_once(&m->far))$/if (1)/
held-hello     vm held                     libhamlyn/src/stream/stream_sender.c s/H_NOTE_HELLO, h_deadline(HELLO_NS))/H_NOTE_HELLO, H_FOREVER)/
held-place     vm held                     libhamlyn/src/manager/manager.h s/return h__unlikely(h__read_once(&m->far)) \&\& deadline_ns >= 0;/return false;/
held-close     vm held                     libhamlyn/src/manager/leaving.c s/^\treturn !h_send_done(m->terminus, l->handle);/\treturn false;/
held-few       vm held                     libhamlyn/src/manager/leaving.c s/room = !m->copied ||/room = true ||/
held-ready     vm held                     libhamlyn/src/stream/stream_credit.c s/may_have_ticket(s) \&\& h__read_once(&s->held_by) < 0/may_have_ticket(s)/
far-whole      native bridge                libhamlyn/src/stream/stream_credit.c s/s->most = whole_to(s, f.buffer)/s->most = f.buffer/
far-until      native bridge                libhamlyn/src/embedded/shm_far.c s/if (until \&\& until < give_up)/if (0)/
bridge-twice   native bridge                tools/hamlyn-bridge/watches.c s/if (!\*at \&\& item/if (item/
bridge-guests  native bridge                tools/hamlyn-bridge/life.c s/from) || !origin_is_ours(fd)) {/from)) {/
bridge-told    native bridge                tools/hamlyn-bridge/watches.c s/^\tdisarm(b, t);$//
bridge-trickle native bridge_peers          tools/hamlyn-bridge/outbox.c s/>= LEAST_TAKEN/> 0/
bridge-soon    native bridge_siege          tools/hamlyn-bridge/life.c s/return p->let_in_ns \&\&/return 0 \&\&/
bridge-deaf    native bridge_peers          tools/hamlyn-bridge/life.c s/listen_again(b, false);/;/
bridge-mute    native bridge_peers          tools/hamlyn-bridge/say.c s/return poll(\&p, 1, 0) > 0 \&\& p.revents \& POLLOUT \&\& write_now/return write/
bridge-caller  native bridge_names          tools/hamlyn-bridge/names.c s/ \&\& of_user + of_host < OF_A_HOST//
bridge-door    native bridge_names          tools/hamlyn-bridge/names.c s/cred.uid != geteuid() ||/0 ||/
bridge-nobody  native bridge_names          tools/hamlyn-bridge/names.c s/p \&\& !b->set.same_users ? NOBODY : user/user/
bridge-number  native bridge_names          tools/hamlyn-bridge/names.c s/if (\*find(b, number_of(p, call->id)))/if (0)/
bridge-process native bridge_names          tools/hamlyn-bridge/names.c s/else if (count_of(b->names, l->pid) > MOST_OF_ONE)/else if (0)/
bridge-cancel  native bridge_names          tools/hamlyn-bridge/names.c s/^\tif (l->kind == CALLER)$/\tif (0)/
bridge-clear   native bridge                tools/hamlyn-bridge/options.c s/set->clear || address_is_loopback(a))/1)/
tcp-stranger   vm hosts                     driver/fabric/tcp.c  s/if (p \&\& same_address(\&p->attr.address, from))/if (p)/
tcp-user       vm hosts                     driver/fabric/tcp.c  s/sin_port) < HML_TCP_RESERVED)$/sin_port))/
tcp-held       vm hosts                     driver/fabric/inbox.c s/if (held_back(p, u))/if (0)/
name-user      vm names                     driver/object/name.c s/of_user < min_t(u32, HML_NAME_USER, /of_user < min_t(u32, HML_NAME_HOST, /
name-host      vm names                     driver/object/name.c s/HML_NAME_HOST - of_host)/HML_NAME_HOST)/
name-count     vm names                     driver/user/charge.c  s/&c->share->names, HML_USER_NAMES/\&c->share->names, ULONG_MAX/
call-count     vm names                     driver/user/charge.c  s/&c->share->calls, HML_USER_CALLS/\&c->share->calls, ULONG_MAX/
name-taken     vm names                     driver/object/name.c s/err = -EADDRINUSE;/n->ended = true;/
name-root      vm names                     driver/fabric/users.c s/return INVALID_UID;/return KUIDT_INIT(user);/
name-map       vm names                     driver/fabric/users.c s/if (has(r, user))$/if (user >= r->from)/
name-unread    vm names                     driver/object/name.c s/ \&\& number < n->unread;/;/
far-most       vm hostile_far               driver/watch/far.c  s/ || side->theirs_count == HML_FAR_MOST || / || /
name-share     vm hostile_names             driver/object/call.c s/call->share = c->share->key;/call->share = call->user;/
name-told      vm hostile_names             driver/object/name.c s/^\t\thml_line_wake(&n->line);/\t\t;/
line-loan      vm hostile_wake              driver/object/line.c s/hml_loan_debit(line->loan, sched_clock() - begin);/(void)begin;/
tcp-told       vm hostile_names             driver/fabric/outbox.c s/sender->share/sender->uid/
watch-told     vm hostile_names             driver/watch/watch.c s/hml_far_new(hml_user_told(c)/hml_far_new(__kuid_val(c->uid)/
call-most      vm hostile_names             driver/object/calls.c s/side->theirs_count < HML_CALLS_MOST \&\& //
call-number    vm names                     driver/object/call.c s/call->number = 0;/;/
call-paid      vm hostile_names             driver/object/call.c s/call->line = NULL;/call->line = NULL; if (call->side \&\& !call->answered) { end_paying(call); call->device = NULL; }/
call-cancel    vm names                     driver/object/calls.c s/hml_calls_tell_later(call, CALL_CANCEL);/;/
call-lost      vm names                     driver/object/calls.c s/while (lose_ours(side))/while (0)/
tcp-share      vm hosts                     driver/watch/far.c  s/if (p->count >= hml_pool_most_of/if (0 \&\& p->count >= hml_pool_most_of/
tcp-trickle    vm hostile_slow             driver/fabric/peer.c s/>= LEAST_TAKEN/> 0/
tcp-soon       vm hosts                     driver/fabric/peer.c s/return p->since \&\&/return 0 \&\&/
tcp-late       vm hosts                     driver/watch/known.c s/if (sender->far)/if (0)/
guess-again    vm hostile_guess             driver/core/tx.c     s/t->sender.guessed = false;//
kernel-second  vm hostile_ticket,paranoid   driver/core/rx.c     s/if (!key || h->key != key)/if (!key)/
watch-key      vm hostile_watch             driver/core/rx.c     s/return key == READ_ONCE(slot->key) ? -1 : HAMLYN_REJECT_KEY;/return -1;/
watch-second   vm hostile_watch             driver/core/rx.c     s/return right \&\& key == right ? -1 : HAMLYN_REJECT_KEY;/return -1;/
watch-zero     vm hostile_watch             driver/core/rx.c     s/return right \&\& key == right/return key == right/
watch-index    vm hostile_watch             driver/core/rx.c     s/if (meta_index >= slot->meta_count)/if (0)/
watch-audit    vm hostile_watch             driver/watch/watch.c s/hml_port_rejected(nic, slot, &h, reject, &sender);//
watch-free     vm hostile_guess             driver/watch/watch.c s/READ_ONCE(nic->guesses)/READ_ONCE(c->device->nic.guesses)/
watch-guess    vm hostile_guess             driver/watch/watch.c s/if (reject != HAMLYN_REJECT_KEY \&\& reject != HAMLYN_REJECT_TICKET)/if (1)/
watch-pause    vm hostile_guess             driver/watch/watch.c s/!hml_bucket_until(\&c->user->bucket, ktime_get_ns());/1;/
watch-free-fd  vm hostile_guess             driver/watch/watch.c s/return arg->flags \& HAMLYN_WATCH_TICKET ||/return/
watch-rekey    vm hostile_watch             driver/object/slot.c s/hml_watch_tell_rekeyed(s);//
watch-crowd    vm hostile_watch             driver/watch/tell.c s/^#define OWNER_BATCHES\t4/#define OWNER_BATCHES 100000/
watch-rest-of  vm hostile_watch             driver/watch/tell.c s/queue_work(hml_workers, \&crowd_work);/;/
freeze-lock    vm hostile_freeze            driver/shared_lock.h s/^\traw_spin_lock(lock);/&preempt_enable();cond_resched();/;s/^\traw_spin_unlock(lock);/preempt_disable();&/
freeze-list    vm hostile_freeze            driver/netlink/dump.c s/if (dump->at->waited_us >= PATIENCE_US ||/if (/
user-turns     native unit_sched            driver/core/sched.c  s/end_visit(order, share_of(turn), rank(turn));/;/
user-visit     native unit_sched            driver/core/sched.c  s/else if (++s->asks >= HML_ORDER_ASKS)/else if (0)/
time-draw      vm hostile_time              driver/engine/engine.c s/if (unlikely(t->client->left <= 0) \&\& !may_borrow(t))/if (0)/
time-aside     vm hostile_time              driver/engine/engine.c s/set_aside(t, ktime_get_ns() + BROKE_NS);/;/
stall-retry    vm conformance_adversary     driver/engine/stalled.c s/queue_delayed_work(hml_workers, \&e->retry/(void)(\&e->retry/
stall-bind     vm conformance_adversary     driver/object/terminus.c s/> HML_STALLED_NS ||/> 1000 * HML_STALLED_NS ||/
engine-leave   vm engine                    driver/object/terminus.c s/hml_engine_leave(t);/;/
watch-tell     vm hostile_watch             driver/object/slot.c s/hml_watch_tell(s);/;/
watch-nq       vm hostile_watch             driver/watch/watch.c s/w->nq->users++;//
watch-claim    vm hostile_watch             driver/watch/watch.c s/HAMLYN_WATCH_CLAIM \&\& s->claimed/HAMLYN_WATCH_CLAIM \&\& 0/
watch-flags    vm uapi_size                 driver/watch/watch.c s/if (arg->flags & ~(HAMLYN_WATCH_TICKET | HAMLYN_WATCH_CLAIM) || arg->reserved)/if (0)/
watch-only     vm hostile_watch             driver/core/rx.c     s/if (slot->flags & HAMLYN_SLOT_TICKET_ONLY)$/if (0)/
watch-ticket   vm hostile_watch             driver/core/rx.c     s/return key \&\& key == READ_ONCE(slot->ticket_key) ?/return 1 ?/
watch-fd       vm hostile_watch             driver/watch/watch.c s/if (arg->key > INT_MAX)/if (0)/
watch-names    vm hostile_watch             driver/watch/watch.c s/if (arg->host || arg->slot || arg->meta_index)/if (0)/
ro-mapping     vm hostile_mmap              driver/object/mmap.c s/return region == HML_REGION_NQ_RING ||.*/return false;/
ro-mprotect    vm hostile_mmap              driver/object/mmap.c s/never |= VM_MAYWRITE;//
exec-mapping   vm hostile_mmap              driver/object/mmap.c s/ || vma->vm_flags & VM_EXEC//
exec-mprotect  vm hostile_mmap              driver/object/mmap.c s/vm_flags_t never = VM_MAYEXEC;/vm_flags_t never = 0;/
private-map    vm hostile_mmap              driver/object/mmap.c s/if (!(vma->vm_flags & VM_SHARED) || /if (/
dontcopy       vm hostile_mmap              driver/object/mmap.c s/VM_DONTCOPY | //
dontexpand     vm hostile_mmap              driver/object/mmap.c s/VM_DONTEXPAND | //
map-length     vm hostile_mmap              driver/object/mmap.c s/if (vma_pages(vma) != ring->memory.pages)/if (0)/
map-area       vm hostile_mmap              driver/object/mmap.c s/if (!a->allocated || vma_pages(vma) != a->pages)/if (!a->allocated)/
map-offset     vm hostile_mmap              driver/object/mmap.c s/if ((u32)offset)/if (0)/
map-ref        vm hostile_mmap              driver/object/mmap.c s/refcount_inc(&memory->ref);//
vma-open       vm hostile_mmap              driver/object/mmap.c s/\.open = vma_open,//
readonly       vm limits                    driver/object/area.c s/if (writable \&\& a->flags & HAMLYN_AREA_READONLY)/if (0)/
area-view      vm uapi_size                 driver/object/area.c s/if (!hml_view_covers(a->mem->length, base, length)) {/if (0) {/
area-users     vm foreign                   driver/object/area.c s/else if (a->users)/else if (0)/
area-rights    vm limits                    driver/object/pin.c  s/gup |= FOLL_WRITE;/;/
memlock        vm limits                    driver/object/pin.c  s/if (had <= limit \&\& pages <= limit - had)/if (1)/
pin-whole      vm limits                    driver/object/pin.c  s/pages += folio_nr_pages(folio);/pages++;/
pin-once       vm huge                      driver/object/pin.c  s/return !__test_and_set_bit(.*;/return 1;/
memory-held    vm limits                    driver/object/memory.c s/^\tif (ours_alone(folio)) {/\tif (1) {/
memory-scan    vm limits                    driver/object/memory.c s/^\t\tif (!ours_alone(folio)) {/\t\tif (1) {/
memlock-ns     vm hostile_admin             driver/object/pin.c  s/ns_capable_noaudit(\&init_user_ns, CAP_IPC_LOCK)/ns_capable(current_user_ns(), CAP_IPC_LOCK)/
area-reserved  vm uapi_size                 driver/object/area.c s/ || arg->reserved || !arg->length)/ || !arg->length)/
nq-users       vm foreign                   driver/object/nq.c   s/else if (nq->users)/else if (0)/
rekey          vm protection                driver/watch/tell.c s/WRITE_ONCE(s->core.key, key);//
unlink         vm protection                driver/object/slot.c s/RCU_INIT_POINTER(c->device->nic.port.slots.*//
revoke-wait    vm protection,fork_kill      driver/object/slot.c s/hml_grace_wait();//
slot-key       vm uapi_size                 driver/object/slot.c s/key = get_random_u64();/key = 5;/
slot-ticket    vm hostile_ticket            driver/object/slot.c s/s->core.ticket_key = new_key();/s->core.ticket_key = 7;/
slot-only      vm hostile_ticket            driver/object/slot.c s/s->core.flags = arg->flags & HAMLYN_SLOT_TICKET_ONLY;//
ticket-rekey   vm hostile_ticket            driver/watch/tell.c s/WRITE_ONCE(s->core.ticket_key, ticket_key);//
ticket-file    vm hostile_ticket            driver/object/ticket.c s/if (file->f_op == &ticket_fops)/if (1)/
ticket-owner   vm hostile_ticket            driver/object/ticket.c s/\.owner.*= THIS_MODULE,//
ticket-cloexec vm hostile_ticket,inherit    driver/object/ticket.c s/get_unused_fd_flags(O_CLOEXEC)/get_unused_fd_flags(0)/
ticket-good    vm hostile_ticket            driver/object/ticket.c s/ret = look_at_slot(c->device, k)/ret = 0/
ticket-inside  vm hostile_ticket            driver/object/ticket.c s/} else if (!hml_view_covers(s->core.data.length, arg->base,/} else if (0 \&\& !hml_view_covers(s->core.data.length, arg->base,/
drop-index     vm hostile_ticket            driver/object/ticket.c s/if (index >= t->core.ticket_count)/if (0)/
drop-empty     vm hostile_ticket            driver/object/ticket.c s/if (!k->key)/if (0)/
drop-clear     vm hostile_ticket            driver/object/ticket.c s/memzero_explicit(k, sizeof(\*k));/;/
ticket-flags   vm uapi_size                 driver/object/ticket.c s/if (arg->flags)/if (0)/
drop-reserved  vm uapi_size                 driver/object/ticket.c s/if (arg->reserved)/if (0)/
ticket-undo    vm uapi_size                 driver/chardev.c     s/\.undo = undo_ticket_create,//
import-undo    vm uapi_size                 driver/chardev.c     s/\.undo = undo_ticket_import,/.undo = NULL,/
watch-undo     vm uapi_size                 driver/chardev.c     s/do_watch, undo_watch, true),/do_watch, NULL, true),/
ioctl-size     vm uapi_size                 driver/chardev.c     s/if (\*size < least)/if (0)/
kick-range     vm uapi_size                 driver/chardev.c     s/return arg > HML_MAX_IDS ? -ENOENT :/return 0 ? -ENOENT :/
explain-form   vm uapi_size                 driver/chardev.c     s/if (!explain.text_size)/if (0)/
explain-self   vm uapi_size                 driver/explain.c     s/if (task == e->task)/if (1)/
explain-text   vm limits                    driver/explain.c     s/vscnprintf(e->text, sizeof(e->text), format, args);//
open-netns     vm hostile_admin             driver/context.c     s/if (!in_namespace(d, net))/if (0)/
open-read      vm hostile_open              driver/chardev.c     s/if (op->reads || c->writable)/if (1)/
open-worker    vm hostile_open              driver/context.c     s/if (likely(!(current->flags \& PF_IO_WORKER)))/if (1)/
clear-slot     vm hostile_remains           driver/object/slot.c s/^\tkfree_sensitive(s);/\tkfree(s);/
clear-ticket   vm hostile_remains           driver/object/ticket.c s/^\tkfree_sensitive(f);/\tkfree(f);/
clear-table    vm hostile_remains           driver/object/ticket.c s/kvfree_sensitive(t->core.tickets,/kvfree_and(t->core.tickets,/;s/^static u32 table_price/#define kvfree_and(p, n) kvfree(p)\n\nstatic u32 table_price/
clear-watch    vm hostile_remains           driver/watch/watch.c s/^\tkfree_sensitive(w);/\tkfree(w);/
clear-terminus vm hostile_remains           driver/object/terminus.c s/memzero_explicit(\&t->core.message, sizeof(t->core.message));/;/
admin-ns       vm hostile_admin             driver/nic.c         s/ns_capable(read_pnet(&d->net)->user_ns, CAP_NET_ADMIN)/ns_capable(current_user_ns(), CAP_NET_ADMIN)/
nic-set        vm hostile_admin             driver/nic.c         s/if (!hml_nic_admin(c->device)) {/if (0) {/
nic-flags      vm hostile_admin,uapi_size   driver/nic.c         s/if (set->flags & ~(HAMLYN_NIC_SET_STATE | HAMLYN_NIC_SET_WATCHDOG |/if (0 \&\& (0 |/
nic-state      vm hostile_admin             driver/nic.c         s/set->state > HAMLYN_NIC_DOWN ||//
nic-watchdog   vm hostile_admin             driver/nic.c         s/set->watchdog_ms > HAMLYN_MAX_WATCHDOG_MS)/0)/
stats-admin    vm hostile_admin             driver/stats.c       s/if (!hml_nic_admin(c->device)) {/if (0) {/
term-admin     vm hostile_admin             driver/object/terminus.c s/if ((arg->priority == HAMLYN_PRIORITY_HIGH || arg->weight > 1) \&\&/if (0 \&\&/
term-priority  vm hostile_admin             driver/object/terminus.c s/arg->priority >= HAMLYN_PRIORITIES ||/0 ||/
term-weight    vm hostile_admin             driver/object/terminus.c s/arg->weight > HAMLYN_MAX_WEIGHT)/0)/
user-memory    vm limits                    driver/user/pool.c   s/^\treturn hml_refusal_over(r, more, used,/\treturn 0 \&\& hml_refusal_over(r, more, used,/
nic-memory     vm hostile_share             driver/user/charge.c  s/r->all = hml_refusal_over(r, pages, d->pages, d->max_pages);/r->all = false;/
user-all-nics  vm hostile_share             driver/user/account.c  s/(exempt || !hml_pool_refuses(/(1 || !hml_pool_refuses(/
user-wired     vm limits                    driver/user/charge.c  s/r.attr = HAMLYN_A_WIRED_BYTES;/r.attr = 0;/
user-slots     vm limits                    driver/user/charge.c  s/r.attr = HAMLYN_A_SLOTS;/u->used.slots++, c->share->used.slots++;/
user-termini   vm limits                    driver/user/charge.c  s/r.attr = HAMLYN_A_TERMINI;/u->used.termini++, c->share->used.termini++;/
poll-crowd     vm poll_wait                 driver/chardev.c     s/if (hml_nq_crowded(c))/if (0)/
poll-all       vm poll_wait                 driver/object/nq.c   s/^\twake_up_all(\&c->wait);/\twake_up(\&c->wait);/
poll-key       vm poll_uring                driver/object/nq.c   s/^\twake_up_all(\&c->wait);/\twake_up_poll(\&c->wait, EPOLLIN);/
watch-rest     vm hostile_watch             driver/watch/tell.c s/nsecs_to_jiffies(RETRY_REST/nsecs_to_jiffies(0/
user-sub       vm hostile_container         driver/user/user.c   s/uid = ns->owner;/;/
user-root      vm hostile_container         driver/user/user.c   s/if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))/if (1)/
user-least     vm hostile_share             driver/user/pool.c   s/total - min(16 \* least, total \/ 2)/total/
user-small     vm limits                    driver/user/account.c  s/(!exempt \&\& hml_pool_refuses(r, \&pool, bytes/(0 \&\& hml_pool_refuses(r, \&pool, bytes/
price-user     vm limits                    driver/context.c     s/ + hml_user_price() + hml_loan_price() +/ +/
wake-debit     vm hostile_wake              driver/object/nq.c   s/^\t\thml_loan_debit(c->loan, sched_clock() - begin);/\t\t(void)begin;/
watch-count    vm hostile_watch             driver/user/charge.c  s/&c->share->watches, HML_USER_WATCHES/\&c->share->watches, ULONG_MAX/
memlock-sub    vm hostile_container         driver/object/pin.c  s/if (!hml_account_charge_locked(c->user->account, pages, limit, \&had))/hml_account_charge_locked(c->user->account, pages, ULONG_MAX, \&had);if (0)/
nl-host-admin  vm hostile_container         driver/netlink/admin.c s/!netlink_capable(skb, CAP_NET_ADMIN)/0/
nl-move-admin  vm hostile_container         driver/netlink/admin.c s/if (!netlink_ns_capable(skb, net->user_ns, CAP_NET_ADMIN))/if (0)/
stats-host     vm hostile_container         driver/stats.c       s/if (ns_capable_noaudit(&init_user_ns, CAP_NET_ADMIN))/if (1)/
nl-stats-host  vm hostile_container         driver/netlink/fill.c s/(r->host_admin ? fill_received(skb, &sum) : 0)/fill_received(skb, \&sum)/
memlock-exempt vm limits                    driver/object/pin.c  s/if (!ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK))/if (1)/
user-opener    vm inherit,limits            driver/user/user.c   s/= user_new(responsible());/= user_new(GLOBAL_ROOT_UID);/
user-exempt    vm hostile_admin             driver/user/charge.c  s/ns_capable_noaudit(\&init_user_ns, CAP_SYS_RESOURCE)/ns_capable(current_user_ns(), CAP_SYS_RESOURCE)/
guess-forget   vm hostile_guess             driver/user/user.c   s/hml_bucket_full(&u->bucket, ktime_get_ns())/1/
pause-told     vm hostile_pause             driver/engine/datapath.c s/if (hml_event_again(/if (1 || hml_event_again(/
quota-told     vm hostile_quota             driver/user/refusal.c  s/if (hml_event_again(/if (1 || hml_event_again(/
audit-own      vm hostile_audit             driver/audit.c       s/read_translated(c->audit,/read_translated(c->device->audit,/
audit-key      vm hostile_audit             driver/audit.c       s/\.offset = h->offset,/.offset = h->key,/
audit-translate vm hostile_audit            driver/audit.c       s/translate(&entries\[i\]);/;/
audit-anew      vm hostile_audit            driver/audit.c       s/task && READ_ONCE(task->start_time) <= e->time_ns/task/
audit-share    vm hostile_audit             driver/audit.c       s/0 : 1 + hash_32(sender->uid, KEYLESS_BITS);/0 : 0;/
audit-user     vm hostile_audit             driver/audit.c       s/0 : 1 + hash_32(sender->uid, KEYLESS_BITS);/0 : 1;/
audit-paranoid vm hostile_audit             driver/audit.c       s/return slot->mode == HAMLYN_SLOT_NORMAL ||/return true ||/
audit-room     vm hostile_audit             driver/audit.c       s/room = min_t(u32, arg->count, HML_AUDIT_CONTEXT);/room = arg->count;/
nl-nic-new     vm hostile_admin             driver/netlink/netlink-gen.c /= hamlyn_nl_nic_new_doit/,/flags/s/GENL_ADMIN_PERM/0/
nl-nic-del     vm hostile_admin             driver/netlink/netlink-gen.c /= hamlyn_nl_nic_del_doit/,/flags/s/GENL_ADMIN_PERM/0/
nl-nic-set     vm hostile_admin             driver/netlink/netlink-gen.c /= hamlyn_nl_nic_set_doit/,/flags/s/GENL_UNS_ADMIN_PERM/0/
nl-nic-feed    vm hostile_admin             driver/netlink/netlink-gen.c /= hamlyn_nl_nic_feed_doit/,/flags/s/GENL_UNS_ADMIN_PERM/0/
nl-term-set    vm hostile_admin             driver/netlink/netlink-gen.c /= hamlyn_nl_terminus_set_doit/,/flags/s/GENL_UNS_ADMIN_PERM/0/
nl-stats       vm hostile_admin             driver/netlink/netlink-gen.c /= hamlyn_nl_stats_get_doit/,/flags/s/GENL_UNS_ADMIN_PERM/0/
nl-limit       vm hostile_admin             driver/netlink/netlink-gen.c /= hamlyn_nl_limit_set_doit/,/flags/s/GENL_ADMIN_PERM/0/
nl-peer-new    vm hostile_admin             driver/netlink/netlink-gen.c /= hamlyn_nl_peer_new_doit/,/flags/s/GENL_UNS_ADMIN_PERM/0/
nl-peer-del    vm hostile_admin             driver/netlink/netlink-gen.c /= hamlyn_nl_peer_del_doit/,/flags/s/GENL_UNS_ADMIN_PERM/0/
nl-peer-get    vm hostile_admin             driver/netlink/netlink-gen.c /= hamlyn_nl_peer_get_dumpit/,/flags/s/GENL_UNS_ADMIN_PERM/0/
nl-peer-told   vm peers                     driver/netlink/peer.c s/for (i = last + 1; i < ARRAY_SIZE/for (i = 99; i < ARRAY_SIZE/
nl-peer-host   vm peers                     driver/netlink/fill.c s/if (!err \&\& r->host_admin)/if (!err)/
nl-fab-clear   vm peers                     driver/netlink/fabric.c s/if (!safe \&\& !clear) {/if (0) {/
nl-fab-device  vm peers                     driver/netlink/fabric.c /^static int need_netdev/,/^}/s/if (clear)/if (1)/
nl-fab-kind    vm peers                     driver/netlink/fabric.c s/return ops \&\& !strcmp(ops->kind, "wireguard");/return true;/
nl-fab-move    vm peers                     driver/netlink/admin.c s/if (hml_tcp_get(d, \&tcp)) {/if (0) {/
nl-contexts    vm hostile_admin             driver/netlink/dump.c s/return dump->reader.admin || uid_eq(c->uid, dump->reader.uid) ||/return true ||/
nl-users       vm hostile_admin             driver/netlink/dump.c s/return dump->reader.admin || uid_eq(u->uid, dump->reader.uid);/return true;/
nl-names       vm lists                     driver/netlink/dump.c s/return dump->reader.admin || uid_eq(n->uid, dump->reader.uid) ||/return true ||/
nl-audit       vm hostile_admin             driver/netlink/dump.c s/if (dump->reader.admin \&\& !dump->attrs\[HAMLYN_A_CONTEXT\])/if (!dump->attrs[HAMLYN_A_CONTEXT])/
nl-use         vm hostile_admin             driver/netlink/fill.c s/if (!r->admin)$/if (0)/
uevent-ns      vm hostile_uevent            driver/nic.c         s/^\t.ns_type = .net_ns_type_operations,$//
uevent-move    vm hostile_uevent            driver/netlink/admin.c s/hml_nic_show_in(d, net);/;/
uevent-home    vm hostile_uevent            driver/nic.c         /^static void move_home/,/^}/s/^\thml_nic_show_in(d, .init_net);$/\t;/
nl-netns       vm hostile_admin             driver/netlink/family.c s/hml_nic_get(genl_info_net(info), from)/hml_nic_get(NULL, from)/
nl-dump-netns  vm hostile_admin             driver/netlink/dump.c s/hml_nic_get(dump->net, from)/hml_nic_get(NULL, from)/
lib-cloexec    vm inherit                   libhamlyn/src/low/kernel.c s/O_RDWR | O_CLOEXEC/O_RDWR/
'

BUILD=$(realpath -m "${BUILD:-build}")
WORK=$BUILD/mutants
WHERE=
BATCH=16	# mutants in one boot
pending=()
# Mutations that make a program hang: for these alone a limit that is reached is an answer.
# Of another one it may be the machine that was slow.
HANGS=" "
AT_LIMIT='ended after [0-9]* seconds, or killed$|: status 124$'
passed=0
failed=0

lines() {
	awk -v where="$WHERE" 'NF && (where == "" || $2 == where)' <<<"$TABLE"
}

# Seconds for one program.
limit_of() { # TEST
	case $1 in
	hostile_freeze) echo 240 ;;
	hostile_remains) echo 300 ;;
	# What does not come is waited for a minute.
	bridge | bridge_* | stuck_tables | names | hostile_names) echo 240 ;;
	*) echo 60 ;;
	esac
}

# What a mutant's kernel is booted with.
kernel_words() { # NAME
	case $1 in
	freeze-*) echo preempt=full ;;
	esac
}

# The names of failing tests in TAP, and of programs that died, one a line.
losers() {
	tr -d '\r' | sed -n 's/^not ok [0-9 -]*//p' | sed 's/^- *//' | sort -u
}

# One tree for all mutations of a place: copied by content, so that only what the
# last one and this one have changed is built again.
copy_sources() { # TREE
	local part
	mkdir -p "$1"
	for part in Makefile driver uapi libhamlyn selftests tools; do
		rsync -rlp --checksum --delete --exclude='*.o' "$part" "$1/"
	done
}

# What runs in a tree that is a test of Active Messages.
am_programs() { # TEST
	case $1 in
	am-killed) echo loss ;;
	am-programs) echo rules loss ;;
	am-libraries) echo shared ;;
	*) echo "${1#am-}" ;;
	esac
}

run_am() { # TEST
	local log=build/am.log run="timeout -k 5 60 build/am/hamlyn-run --timeout 30" rc=0
	case $1 in
	am-engine) $run -n 1 build/am/engine || echo "not ok - $1: status $?" ;;
	am-rules) $run -n 2 build/am/rules || echo "not ok - $1: status $?" ;;
	am-killed)
		$run --keep-going -n 2 build/am/loss killed >$log || rc=$?
		grep -q "^ok - a killed process" $log || echo "not ok - $1: status $rc"
		;;
	am-programs)
		# shellcheck disable=SC2016 # the variables are of the inner shell
		$run -n 2 sh -c 'exec build/am/$([ $PMI_RANK = 0 ] && echo rules || echo loss) stopped' >$log || rc=$?
		grep -q "another program" $log || echo "not ok - $1: status $rc"
		;;
	am-libraries)
		# shellcheck disable=SC2016
		$run -n 2 sh -c '[ $PMI_RANK = 0 ] || export LD_PRELOAD=libm.so.6; exec build/am/shared' >$log || rc=$?
		grep -q "other libraries" $log || echo "not ok - $1: status $rc"
		;;
	esac
}

run_native() { # TREE TESTS
	local tree=$1 test name units=() others=() am=() programs=()
	for test in ${2//,/ }; do
		case $test in
		unit_*) units+=("build/unit/$test") ;;
		am-*)
			am+=("$test")
			for name in $(am_programs "$test") hamlyn-run; do
				programs+=("build/am/$name")
			done
			;;
		*) others+=("build/selftests/$test") ;;
		esac
	done
	make -C "$tree" -s BUILD=build "${units[@]}" "${others[@]}" "${programs[@]}" \
		>"$tree/build.log" 2>&1 ||
		{ echo "(does not build: $tree/build.log)"; return; }
	{
		for test in "${units[@]}"; do
			CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 5 120 "$tree/$test" ||
				echo "not ok - ${test##*/}: status $?"
		done
		for test in "${am[@]}"; do
			(cd "$tree" && run_am "$test") || true
		done
		for test in "${others[@]}"; do
			(cd "$tree" && selftests/run-tests.sh --timeout "$(limit_of "${test##*/}")" \
				--device "shm:mutant-$$" "$test") || true
		done
	} 2>&1 | losers
}

# Builds the module of a mutant, and its tests if the library is what was changed.
build_vm() { # NAME TREE TESTS
	local name=$1 tree=$2 test to=$WORK/vm-$1
	rm -rf "$to"
	mkdir -p "$to"
	selftests/vm/build-module.sh 6.1 "$tree" "$WORK/module" >"$to/build.log" 2>&1 || return 1
	# Without debugging information: it would fill the guest's memory.
	strip -d -o "$to/$name.ko" "$WORK/module/hamlyn.ko"
	diff -rq libhamlyn "$tree/libhamlyn" >/dev/null && return 0
	for test in ${3//,/ }; do
		make -C "$tree" -s BUILD=build "build/selftests/$test" >>"$to/build.log" 2>&1 || return 1
		cp "$tree/build/selftests/$test" "$to/"
	done
}

guest_tests() { # NAME
	local test
	for test in $(tests_of "$1" | tr , ' '); do
		echo "test=$test; [ ! -x vm-$1/$test ] || test=vm-$1/$test"
		echo "sh ./run-tests.sh --timeout $(limit_of "$test") --device /dev/hamlyn0 \$test"
	done
}

# What the guest does: one mutant after the other. A mutant that cannot be unloaded
# leaves no room for the next.
guest_script() { # NAME...
	local name
	echo "cd /host"
	for name in "$@"; do
		cat <<EOT
echo "MUTANT $name"
insmod ./$name.ko nics=2 max_slots=2048 guesses=0
$(guest_tests "$name")
rmmod hamlyn || exit 1
echo "END $name"
EOT
	done
}

tests_of() { # NAME
	awk -v name="$1" '$1 == name { print $3 }' <<<"$TABLE"
}

# Return: that of run.sh; 124 if the time was up.
boot() { # NAME...
	local name test files=() seconds=60 rc=0
	guest_script "$@" >"$WORK/script"
	for name in "$@"; do
		files+=(--file "$WORK/vm-$name/$name.ko" --file "$WORK/vm-$name")
		for test in $(tests_of "$name" | tr , ' '); do
			files+=(--file "$BUILD/selftests/$test")
			seconds=$((seconds + 20 + $(limit_of "$test")))
		done
	done
	selftests/vm/run.sh 6.1 --timeout "$seconds" --out "$WORK/out" --script "$WORK/script" \
		--append "$(kernel_words "$1")" --file selftests/run-tests.sh "${files[@]}" 2>&1 |
		tr -d '\r' >"$WORK/vm.log" || rc=$?
	return "$rc"
}

# A mutant may bring the kernel down: it, and those behind it, are run alone.
flush_vm() {
	local batch=("${pending[@]}") name noticed all=0 rc
	pending=()
	[ ${#batch[@]} != 0 ] || return 0
	boot "${batch[@]}" || all=$?
	cp "$WORK/vm.log" "$WORK/batch.log"
	for name in "${batch[@]}"; do
		rc=$all
		if grep -qx "END $name" "$WORK/batch.log"; then
			cp "$WORK/batch.log" "$WORK/vm.log"
		elif [ ${#batch[@]} != 1 ]; then
			rc=0
			boot "$name" || rc=$?
		fi
		noticed=$(sed -n "/^MUTANT $name\$/,/^END $name\$/p" "$WORK/vm.log" | losers)
		if ! grep -qx "END $name" "$WORK/vm.log"; then
			noticed="${noticed:+$noticed$'\n'}(kernel) $([ "$rc" = 124 ] &&
				echo "all: status 124" || echo "it did not survive that")"
		fi
		count report "$name" "$noticed"
	done
}

applies() { # NAME FILE EXPRESSION
	if [ ! -f "$2" ] || sed "$3" "$2" | cmp -s - "$2"; then
		echo "not ok - $1: does not apply to $2 any more"
		return 1
	fi
}

report() { # NAME NOTICED
	if [ -z "$2" ] || [[ $2 == "(does not build"* ]]; then
		echo "not ok - $1 survived${2:+ $2}"
		return 1
	fi
	if [[ $HANGS != *" $1 "* ]] && ! grep -qvE "$AT_LIMIT" <<<"$2"; then
		echo "not ok - $1: noticed by a limit only, and is not one of those that hang: $2"
		return 1
	fi
	echo "ok - $1: noticed by $(wc -l <<<"$2") tests"
	head -n 12 <<<"${2//$'\n'/$'\n#    '}" | sed '1s/^/#    /'
}

count() { # COMMAND...
	if "$@"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
}

mutate() { # NAME WHERE TESTS FILE EXPRESSION
	local name=$1 where=$2 tests=$3 file=$4 tree=$WORK/$2
	if ! applies "$name" "$file" "$5"; then
		failed=$((failed + 1))
		return
	fi
	copy_sources "$tree"
	sed -i "$5" "$tree/$file"
	tree=$(realpath "$tree")
	if [ "$where" = native ]; then
		count report "$name" "$(run_native "$tree" "$tests")"
	elif build_vm "$name" "$tree" "$tests"; then
		[ ${#pending[@]} = 0 ] || [ "$(kernel_words "$name")" = "$(kernel_words "${pending[0]}")" ] || flush_vm
		pending+=("$name")
		[ ${#pending[@]} -lt $BATCH ] || flush_vm
	else
		count report "$name" "(does not build: $WORK/vm-$name/build.log)"
	fi
}

main() {
	local name where tests file expression only_check=no
	while [[ ${1:-} == -* ]]; do
		case $1 in
		-h | --help) usage; exit 0 ;;
		--list) lines | awk '{ print $1, "(" $2 ")", $3, $4 }'; exit 0 ;;
		--check) only_check=yes ;;
		--where)
			case ${2:-} in
			native | vm) WHERE=$2 ;;
			*) echo "mutate.sh: --where native or vm" >&2; exit 2 ;;
			esac
			shift
			;;
		*) usage >&2; exit 2 ;;
		esac
		shift
	done
	export HAMLYN_CACHE=${HAMLYN_CACHE:-$PWD/.cache}
	# Only what runs in the guest is taken from here.
	[ $only_check = yes ] || [ "$WHERE" = native ] || make -s "BUILD=$BUILD" lib selftests
	mkdir -p "$WORK"
	while read -r name where tests file expression <&3; do
		[ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
		if [ $only_check = yes ]; then
			count applies "$name" "$file" "$expression"
		else
			mutate "$name" "$where" "$tests" "$file" "$expression"
		fi
	done 3< <(lines)
	flush_vm
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ] && [ "$passed" != 0 ]
}

main "$@"
