#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs the fuzz targets of this folder: see README.md beside it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
	cat <<'EOT'
Usage: selftests/fuzz/run.sh quick [SECONDS]       all targets, in so many seconds in all (120)
       selftests/fuzz/run.sh long TARGET|all SECONDS   each for so many seconds
       selftests/fuzz/run.sh replay [TARGET]       what is in corpus/, once
       selftests/fuzz/run.sh prove [NAME]          plants bugs, one at a time: each must be found
       selftests/fuzz/run.sh keep TARGET|all       takes what "long" has found into corpus/
       selftests/fuzz/run.sh brute [FRAMES]        so many frames between hosts (10^9), not libFuzzer's
       selftests/fuzz/run.sh list                  targets, and planted bugs

"quick" makes the same choices each time, unless $FUZZ_SEED says others (0: new ones); the
others make new ones. Builds what it needs into $BUILD/fuzz (default build/fuzz), with clang. All processors are used.
What makes a target fail is kept in $BUILD/fuzz/crashes. Ends with "N passed, N failed".
EOT
}

BUILD=${BUILD:-build}
HERE=selftests/fuzz
OUT=$BUILD/fuzz
CRASHES=$OUT/crashes
JOBS=$(nproc)
KEEP_BYTES=9000		# of each target in corpus/
KEEP_FILES=24
PROVE_SECONDS=60
SEED=${FUZZ_SEED-}
COMPLAINTS='must hold\|runtime error\|ERROR:\|Sanitizer\|BINGO'

# name target file expression: a check less, and what it lets in must be found.
plants() {
	cat <<'EOT'
fragment-bounds trb driver/core/tx.c s/if (!hml_view_covers(area->length, p->offset, p->length))/if (0)/
length-read-twice trb driver/core/tx.c /static __always_inline bool send_plain/,/^}/s/\.length = length,/.length = READ_ONCE(entry->length),/
plain-admission trb driver/core/rx.c s/if (unlikely(!nq || admit_packet(slot, \&h, true) >= 0))/if (unlikely(!nq))/
ticket-range trb driver/core/tx.c s/!hml_view_covers(k->length, trb->offset - k->base, trb->length)/0/
packet-bounds packet driver/core/rx.c s/if (unlikely(!hml_view_covers(slot->data.length, h->offset, h->length)))/if (0)/
packet-key packet driver/core/rx.c s/if (unlikely(h->key != READ_ONCE(slot->key)))/if (0)/
metadata-index packet driver/core/rx.c s/likely(h->meta_index < slot->meta_count)/true/
one-shot packet driver/core/rx.c s/if (!(state & HAMLYN_META_ARMED) ||/if (/
last-entry nq driver/core/notify.c s/used >= nq->mask ||/used > nq->mask ||/
quiet nq driver/core/notify.c s/if (unlikely(!wake) &&/if (0 \&\&/
wire-agree wire driver/core/wire.c s/ || f->header_bytes != data_body(flags, meta_length))/)/
wire-flags wire driver/core/wire.c s/if (flags \& ~HAMLYN_PACKET_FLAGS)/if (0)/
wire-body wire driver/core/wire.c s/if (f->header_bytes < bodies\[i\].least || /if (/
wire-next wire driver/core/wire.c s/if (f->sequence != rx->sequence)/if (0)/
pass-of-another sched driver/core/sched.c s/^\t\torder->idle\[r\]--;/\t\t;/
ticket-length ticket libhamlyn/src/low/ticket.c s/length < H_TICKET_BYTES || //
ticket-file ticket libhamlyn/src/embedded/shm_ticket.c s/f->key != READ_ONCE(slot->ticket_key)/0/
slot-range embedded libhamlyn/src/low/object.c s/if (!inside(a, at->base, s->length) ||/if (/
area-in-use embedded libhamlyn/src/low/object.c /^int h_area_remove/,/^}/s/if (a->users)/if (0)/
watch-end segment libhamlyn/src/embedded/shm_table.c s/i < shm_watch_end(seg)/i < seg->watch_end/
page-table segment libhamlyn/src/embedded/shm_table.c s/if (end > shm->pages)/if (0)/
credit stream libhamlyn/src/stream/stream_credit.c s/if (released - s->released > sent - s->released) {/if (0) {/
message-limit stream libhamlyn/src/channel/channel_receive.c s/if (record->length > ch->limit || more > ch->limit - record->length)/if (0)/
message-end stream libhamlyn/src/channel/channel_receive.c s/ || record->length > in->total - in->done ||/ ||/
datagram-offset message libhamlyn/src/message/datagram.c s/|| out->offset > d->length ||/||/
empty-message rendezvous libhamlyn/src/rendezvous/rendezvous_message.c s/^\tif (n < 0)$/\tif (n <= 0)/
name-characters settings libhamlyn/src/embedded/shm_spec.c s/if (!isalnum((unsigned char)spec\[i\]) \&\&/if (0 \&\&/
control-characters netlink tools/hamlynctl/record/clean.c s/return \*bytes < ' ' || \*bytes == 0x7f ||/return/
kernels-words netlink tools/hamlynctl/record/netlink.c s/text = clean_sentence(nl->text, strlen(nl->text));/text = must_alloc(strdup(nl->text));/
no-object cmdline tools/hamlynctl/main.c s/^\tif (!object)$/\tif (0)/
buffer-number am libhamlyn/am/arrive.c s/index >= 2 \* all || //
region-access ofi libhamlyn/ofi/src/domain/mr.c s/if (!(mr->access & access))/if (0)/
hello-data ofi libhamlyn/ofi/src/connect/conn.c s/ || hello->data_length > HF_CM_DATA)/)/
field-room pmi libhamlyn/am/pmi_line.h s/if (n >= size)/if (n > size)/
fed-room link tools/hamlyn-run/hosts/far.c s/if (number > WINDOW_BYTES - far->feed)/if (0)/
far-rank link tools/hamlyn-run/hosts/far.c s/ || !far_has(far, rank)//
far-room link tools/hamlyn-run/hosts/far.c s/if (far->owed\[which\] > WINDOW_BYTES)/if (0)/
start-words link tools/hamlyn-run/hosts/start.c s/ || !start->words\[n + numbers->words\]//
line-room pmi tools/hamlyn-run/pmi.c s/if (client->len == sizeof(client->in))/if (0)/
EOT
}

targets() {
	make --no-print-directory -s -f "$HERE/build.mk" "BUILD=$BUILD" fuzz-print-targets
}

fail_usage() {
	echo "run.sh: $1" >&2
	usage >&2
	exit 2
}

chosen() { # TARGET|all
	local all
	all=$(targets)
	[ "$1" != all ] || { echo "$all"; return; }
	[[ " $all " == *" $1 "* ]] || fail_usage "there is no target \"$1\", only: $all"
	echo "$1"
}

build() { # TARGET...
	make --no-print-directory -s "-j$JOBS" -f "$HERE/build.mk" "BUILD=$BUILD" "${@/#/$OUT/}"
}

seeds() { # TARGET: folders with what is known, the first one for what is found
	mkdir -p "$HERE/corpus/$1"
	echo "$HERE/corpus/$1"
}

options() { # TARGET
	local dict=$HERE/$1.dict
	echo "-timeout=60 -rss_limit_mb=2048 -max_len=1500 -len_control=0 -verbosity=1"
	echo "-artifact_prefix=$CRASHES/$1-"
	[ ! -f "$dict" ] || echo "-dict=$dict"
}

# One line of what a run of a target has come to.
verdict() { # TARGET LOG STATUS
	local line runs edges
	line=$(grep -a '^#[0-9]*[[:space:]]*DONE' "$2" | tail -n 1) || true
	if [ "$3" = 0 ] && [[ $line =~ ^\#([0-9]+) ]]; then
		runs=${BASH_REMATCH[1]}
		edges=${line##* cov: }
		edges=${edges%% *}
		echo "ok - $1: $runs executions, $edges edges"
		return 0
	fi
	# In the same line: it may be all that is kept of a run on another machine.
	line=$(grep -a -m 1 "$COMPLAINTS" "$2") || line=$(tail -n 1 "$2")
	echo "not ok - $1: status $3: ${line:-nothing was said}"
	grep -a "$COMPLAINTS" "$2" | sed -n '2,3 s/^/#   /p' || true
	line=$(sed -n 's/.*Test unit written to \(.*\)/\1/p' "$2" | tail -n 1)
	[ -z "$line" ] || echo "#   again: $OUT/$1 $line"
	echo "#   all of it: $2"
	return 1
}

fuzz_one() { # TARGET SECONDS FOUND
	local log=$OUT/log-$1 rc=0 found=$3 flags
	mkdir -p "$found"
	read -r -d '' -a flags < <(options "$1") || true
	[ -z "$SEED" ] || flags+=("-seed=$SEED")
	timeout -k 10 $(($2 + 300)) "$OUT/$1" "${flags[@]}" "-max_total_time=$2" "$found" \
		"$(seeds "$1")" >"$log" 2>&1 || rc=$?
	verdict "$1" "$log" "$rc"
}

replay_one() { # TARGET
	local log=$OUT/log-$1 rc=0 flags
	read -r -d '' -a flags < <(options "$1") || true
	timeout -k 10 600 "$OUT/$1" "${flags[@]}" -runs=0 "$(seeds "$1")" >"$log" 2>&1 || rc=$?
	verdict "$1" "$log" "$rc"
}

# As many at a time as there are processors; what each says comes whole.
all_of() { # COMMAND TARGETS [ARGUMENT...]
	local command=$1 names=$2 name running=0 passed failed
	shift 2
	rm -f "$OUT"/verdict-*
	for name in $names; do
		if [ $running -ge "$JOBS" ]; then
			wait -n || true
			running=$((running - 1))
		fi
		("$command" "$name" "$@" >"$OUT/verdict-$name" 2>&1 || true
		cat "$OUT/verdict-$name") &
		running=$((running + 1))
	done
	wait
	passed=$(cat "$OUT"/verdict-* | grep -c '^ok - ') || true
	failed=$(($(wc -w <<<"$names") - passed))
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ] && [ "$passed" != 0 ]
}

quick_one() { # TARGET SECONDS
	rm -rf "$OUT/quick/$1"
	fuzz_one "$1" "$2" "$OUT/quick/$1"
}

long_one() { # TARGET SECONDS
	fuzz_one "$1" "$2" "$OUT/found/$1"
}

quick() { # SECONDS
	local names each
	: "${SEED:=1}"
	names=$(targets)
	# shellcheck disable=SC2086 # words
	build $names
	each=$(($1 * JOBS / $(wc -w <<<"$names")))
	all_of quick_one "$names" $((each > 0 ? each : 1))
}

# ---- brute force ----

brute() { # FRAMES
	local each=$(($1 / JOBS)) seed=${SEED:-$RANDOM$RANDOM} i failed=0 pids=()
	build brute-wire
	for ((i = 0; i < JOBS; i++)); do
		"$OUT/brute-wire" "$each" $((seed + i)) >"$OUT/log-brute-$i" 2>&1 &
		pids+=($!)
	done
	for ((i = 0; i < JOBS; i++)); do
		if wait "${pids[i]}"; then
			echo "ok - seed $((seed + i)): $(cat "$OUT/log-brute-$i")"
		else
			echo "not ok - seed $((seed + i)): $(tail -n 1 "$OUT/log-brute-$i")"
			failed=$((failed + 1))
		fi
	done
	echo "$((JOBS - failed)) passed, $failed failed"
	[ "$failed" = 0 ]
}

# ---- the corpus ----

# What covers as much with few files, and of that the smaller ones.
keep() { # TARGET
	local new=$OUT/keep/$1 flags bytes=0 files=0 file size
	rm -rf "$new"
	mkdir -p "$new" "$OUT/found/$1" "$HERE/corpus/$1"
	read -r -d '' -a flags < <(options "$1") || true
	"$OUT/$1" "${flags[@]}" -set_cover_merge=1 "$new" "$HERE/corpus/$1" "$OUT/found/$1" \
		>"$OUT/log-$1" 2>&1 || {
		echo "not ok - $1: $OUT/log-$1"
		return 1
	}
	# Those with a name of their own are regressions, and stay.
	find "$HERE/corpus/$1" -type f -regextype posix-extended -regex '.*/[0-9a-f]{40}' -delete
	while read -r size file; do
		bytes=$((bytes + size))
		files=$((files + 1))
		if [ $bytes -gt $KEEP_BYTES ] || [ $files -gt $KEEP_FILES ]; then
			break
		fi
		cp "$file" "$HERE/corpus/$1/"
	done < <(find "$new" -type f -printf '%s %p\n' | sort -n | awk '{ a[NR] = $0 }
		END { n = NR < '$KEEP_FILES' ? NR : '$KEEP_FILES'; for (i = 1; i <= NR; i += NR / n) print a[int(i)] }')
	echo "ok - $1: $(find "$HERE/corpus/$1" -type f | wc -l) files"
}

# ---- planted bugs ----

prove_one() { # NAME TARGET FILE EXPRESSION
	local name=$1 target=$2 file=$3 tree=$OUT/prove log rc=0
	log=$(realpath "$OUT")/prove-$name.log
	if sed "$4" "$file" | cmp -s - "$file"; then
		echo "not ok - $name: does not apply to $file any more"
		return 1
	fi
	cp -p "$tree/$file" "$tree/was"
	sed -i "$4" "$tree/$file"
	(cd "$tree" && BUILD=build make --no-print-directory -s "-j$JOBS" \
		-f "$HERE/build.mk" BUILD=build "build/fuzz/$target" &&
		mkdir -p build/fuzz/crashes && rm -rf empty && mkdir empty) >"$log" 2>&1 ||
		{ echo "not ok - $name: does not build: $log"; rc=1; }
	if [ $rc = 0 ]; then
		local flags begun=$SECONDS
		read -r -d '' -a flags < <(OUT=build/fuzz CRASHES=build/fuzz/crashes options "$target") || true
		(cd "$tree" && timeout -k 10 $((PROVE_SECONDS * 2 + 60)) "build/fuzz/$target" \
			"${flags[@]}" "-max_total_time=$PROVE_SECONDS" empty "$HERE/corpus/$target") \
			>"$log" 2>&1 || rc=$?
		if grep -aq 'must hold\|runtime error\|ERROR: AddressSanitizer\|ERROR: libFuzzer: \(deadly\|timeout\)' "$log"; then
			echo "ok - $name ($target): found after $((SECONDS - begun)) s: $(grep -a -m 1 -o \
				'must hold.*\|runtime error.*\|AddressSanitizer: [a-zA-Z-]*\|libFuzzer: timeout' "$log" |
				cut -c1-90)"
			rc=0
		else
			echo "not ok - $name ($target): not found in $PROVE_SECONDS s: $log"
			rc=1
		fi
	fi
	# Newer than what was built of the changed one.
	cp "$tree/was" "$tree/$file"
	return $rc
}

prove() { # [NAME...]
	local tree=$OUT/prove name target file expression passed=0 failed=0 part
	mkdir -p "$tree"
	for part in driver uapi libhamlyn tools selftests/fuzz; do
		mkdir -p "$tree/$part"
		rsync -rlpt --delete --exclude='*.o' "$part/" "$tree/$part/"
	done
	# What was built is not built again, but for what the bug is in.
	# shellcheck disable=SC2046 # words
	build $(targets)
	mkdir -p "$tree/build/fuzz"
	for part in lib am-lib ofi-lib run ctl target libhamlyn.a; do
		[ -e "$OUT/$part" ] || continue
		rsync -rlpt "$OUT/$part" "$tree/build/fuzz/"
	done
	while read -r name target file expression <&3; do
		[ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
		if prove_one "$name" "$target" "$file" "$expression"; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
		fi
	done 3< <(plants)
	echo "$passed passed, $failed failed"
	[ $failed = 0 ] && [ $passed != 0 ]
}

main() {
	local command=${1:-} names
	[ $# = 0 ] || shift
	mkdir -p "$OUT" "$CRASHES"
	# Leaks are looked for once, at the end: the devices of targets live as long as they.
	export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1:handle_abort=1}
	export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
	case $command in
	-h | --help) usage ;;
	quick)
		[[ ${1:-120} =~ ^[1-9][0-9]*$ ]] || fail_usage "\"$1\" is no number of seconds"
		quick "${1:-120}"
		;;
	long)
		[[ ${2:-} =~ ^[1-9][0-9]*$ ]] || fail_usage "long needs a target, or all, and seconds"
		names=$(chosen "$1")
		# shellcheck disable=SC2086 # words
		build $names
		all_of long_one "$names" "$2"
		;;
	replay)
		names=$(chosen "${1:-all}")
		# shellcheck disable=SC2086 # words
		build $names
		all_of replay_one "$names"
		;;
	keep)
		[ $# = 1 ] || fail_usage "keep needs a target, or all"
		names=$(chosen "$1")
		# shellcheck disable=SC2086 # words
		build $names
		all_of keep "$names"
		;;
	brute)
		[[ ${1:-1000000000} =~ ^[1-9][0-9]*$ ]] || fail_usage "\"$1\" is no number of frames"
		brute "${1:-1000000000}"
		;;
	prove) prove "$@" ;;
	list)
		echo "targets: $(targets)"
		plants | awk '{ print $1 " (" $2 "): " $3 }'
		;;
	*) fail_usage "quick, long, replay, prove, keep, brute or list?" ;;
	esac
}

main "$@"
