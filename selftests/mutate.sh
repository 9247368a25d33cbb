#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Takes out one check at a time and sees which tests notice. A check whose
# removal no test notices protects nobody from the next careless change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
	cat <<'EOT'
Usage: selftests/mutate.sh [--list] [NAME...]

For each mutation (default: all): copies the sources, changes one line, builds,
runs the tests that should notice, and prints the names of those that do.
Fails if a mutation survives, or does not apply any more. Needs what
"make check-vm KERNEL=6.1" needs. Takes about 20 s a mutation.
EOT
}

# name, where it is noticed (native or vm), file, sed expression
TABLE='
key          native driver/core/rx.c  s/if (h->key != READ_ONCE(slot->key))/if (0)/
bounds       native driver/core/rx.c  s/if (!hml_view_covers(slot->data.length, h->offset, h->length))/if (0)/
bounds-sum   native driver/core/nic.h s/return offset <= length \&\& bytes <= length - offset;/return offset + bytes <= length;/
meta-index   native driver/core/rx.c  s/return h->meta_index < slot->meta_count ?/return 1 ?/
second-key   native driver/core/rx.c  s/if (!key || h->key != key)/if (!key)/
second-zero  native driver/core/rx.c  s/if (!key || h->key != key)/if (h->key != key)/
second-low   native driver/core/rx.c  s/if (high < low || h->offset < low ||/if (high < low ||/
second-high  native driver/core/rx.c  s/!hml_view_covers(high - low, h->offset - low, h->length)/0/
one-shot     native driver/core/rx.c  s/if (!(state \& HAMLYN_META_ARMED) ||/if (/
one-shot-end native driver/core/rx.c  s/last = next == (HAMLYN_META_ARMED | HAMLYN_META_COMPLETE);/last = complete;/
live         native driver/core/rx.c  s/if (!slot || !smp_load_acquire(&slot->live))/if (!slot)/
tag-range    native driver/core/tx.c  s/if (tag >= HAMLYN_MAX_TAGS || /if (/
tag-bound    native driver/core/tx.c  s/if (!area->length)/if (0)/
fragment     native driver/core/tx.c  s/if (!hml_view_covers(area->length, p->offset, p->length))/if (0)/
trb-flags    native driver/core/tx.c  s/if (trb->flags & ~HAMLYN_TRB_FLAGS || /if (/
offset-wrap  native driver/core/tx.c  s/if (m->header.offset > U64_MAX - sent)/if (0)/
nq-full      native driver/core/notify.c s/if (unlikely(used > nq->mask)) {/if (0) {/
shm-rekey    native libhamlyn/src/shm_device.c s/WRITE_ONCE(rec->slot.key, key);//
shm-owner    native libhamlyn/src/shm_segment.c s/st.st_uid != geteuid() || st.st_mode & 077/0/
kernel-key   vm driver/core/rx.c      s/if (h->key != READ_ONCE(slot->key))/if (0)/
kernel-bounds vm driver/core/rx.c     s/if (!hml_view_covers(slot->data.length, h->offset, h->length))/if (0)/
ro-mapping   vm driver/mmap.c         s/return region == HML_REGION_NQ_RING ||.*/return false;/
ro-mprotect  vm driver/mmap.c         s/never |= VM_MAYWRITE;//
exec-mapping vm driver/mmap.c         s/ || vma->vm_flags & VM_EXEC//
private-map  vm driver/mmap.c         s/if (!(vma->vm_flags & VM_SHARED) || /if (/
dontcopy     vm driver/mmap.c         s/VM_DONTCOPY | //
map-length   vm driver/mmap.c         s/if (vma_pages(vma) != ring->memory.pages)/if (0)/
readonly     vm driver/area.c         s/if (writable \&\& a->flags & HAMLYN_AREA_READONLY)/if (0)/
area-view    vm driver/area.c         s/if (!hml_view_covers(a->mem->length, base, length))/if (0)/
area-users   vm driver/area.c         s/else if (a->users)/else if (0)/
memlock      vm driver/area.c         s/if (had > limit || a->pages > limit - had) {/if (0) {/
nq-users     vm driver/nq.c           s/else if (nq->users)/else if (0)/
rekey        vm driver/slot.c         s/WRITE_ONCE(s->core.key, arg->key);//
unlink       vm driver/slot.c         s/RCU_INIT_POINTER(c->device->nic.port.slots.*//
stats-admin  vm driver/stats.c        s/if (!capable(CAP_NET_ADMIN))/if (0)/
reserved     vm driver/area.c         s/ || arg->reserved || !arg->length)/ || !arg->length)/
'

BUILD=${BUILD:-build}
WORK=$BUILD/mutants
NATIVE_TESTS=(paranoid protection send_errors sendrecv gather nq segment lifecycle)
VM_TESTS=(paranoid protection hostile_mmap hostile_wq foreign limits lifecycle uapi_size fork_kill)

lines() {
	grep -v '^$' <<<"$TABLE"
}

# The names of failing tests in TAP, and of programs that died, one a line.
losers() {
	tr -d '\r' | sed -n 's/^not ok [0-9 -]*//p' | sed 's/^- *//' | sort -u
}

run_native() { # TREE
	local tree=$1 tests=() test
	make -C "$tree" -s BUILD=build lib units selftests >"$tree/build.log" 2>&1 ||
		{ echo "(does not build: $tree/build.log)"; return; }
	for test in "${NATIVE_TESTS[@]}"; do
		tests+=("$tree/build/selftests/$test")
	done
	{
		"$tree/selftests/unit/run.sh" "$tree/build/unit" || true
		"$tree/selftests/run-tests.sh" --timeout 60 --device "shm:mutant-$$" "${tests[@]}" || true
	} 2>&1 | losers
}

run_vm() { # TREE
	local tree=$1 files=() test
	"$tree/selftests/vm/build-module.sh" 6.1 "$tree" "$tree/module" >"$tree/build.log" 2>&1 ||
		{ echo "(does not build: $tree/build.log)"; return; }
	for test in "${VM_TESTS[@]}"; do
		files+=(--file "$BUILD/selftests/$test")
	done
	"$tree/selftests/vm/run.sh" 6.1 --timeout 240 --module "$tree/module/hamlyn.ko" \
		--module-args max_slots=2048 --file selftests/run-tests.sh "${files[@]}" \
		--cmd "sh ./run-tests.sh --timeout 60 --device /dev/hamlyn0 ${VM_TESTS[*]}" \
		>"$tree/vm.log" 2>&1 || true
	losers <"$tree/vm.log"
	# A mutant may also bring the kernel down: that is noticed, too.
	sed -n 's/^# run.sh: FAILED/(kernel) &/p' "$tree/vm.log"
}

mutate() { # NAME WHERE FILE EXPRESSION
	local name=$1 where=$2 file=$3 expression=$4 tree=$WORK/$1 noticed
	rm -rf "$tree"
	mkdir -p "$tree"
	cp -r Makefile driver uapi libhamlyn selftests tools "$tree/"
	sed -i "$expression" "$tree/$file"
	if cmp -s "$file" "$tree/$file"; then
		echo "not ok - $name: does not apply to $file any more"
		return 1
	fi
	noticed=$("run_$where" "$(realpath "$tree")")
	if [ -z "$noticed" ] || [[ $noticed == "(does not build"* ]]; then
		echo "not ok - $name survived in $file ${noticed:+$noticed}"
		return 1
	fi
	echo "ok - $name: noticed by $(wc -l <<<"$noticed") tests"
	head -n 12 <<<"${noticed//$'\n'/$'\n#    '}" | sed '1s/^/#    /'
	rm -rf "$tree"
}

main() {
	local name where file expression passed=0 failed=0
	case ${1:-} in
	-h | --help) usage; exit 0 ;;
	--list) lines | awk '{ print $1, "(" $2 ")", $3 }'; exit 0 ;;
	esac
	export HAMLYN_CACHE=${HAMLYN_CACHE:-$PWD/.cache}
	make -s lib selftests
	while read -r name where file expression; do
		[ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
		if mutate "$name" "$where" "$file" "$expression" </dev/null; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
		fi
	done < <(lines)
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ] && [ "$passed" != 0 ]
}

main "$@"
