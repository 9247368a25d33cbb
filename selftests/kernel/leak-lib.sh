# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# In the guest: what a kernel with kmemleak and page_owner keeps account of. Sourced by
# leak-guest.sh, by guest.sh with kmemleak=on, and by the scripts of mutants/run.py --leaks.

debug=/sys/kernel/debug

can_scan() {
	[ -w $debug/kmemleak ] || { echo "no kmemleak: is kmemleak=on?"; return 1; }
	echo scan >$debug/kmemleak || { echo "kmemleak is off"; return 1; }
}

can_look() {
	can_scan || return 1
	[ -r $debug/page_owner ] || { echo "no page_owner: is page_owner=on?"; return 1; }
	dd if=$debug/page_owner bs=16k count=1 2>/dev/null | grep '^Page allocated via order' ||
		{ echo "page_owner cannot be read"; return 1; }
}

# An object is reported when it is older than 5 s at the start of a scan, and the checksum
# of what is in it has not changed since the last. A third scan, of many seconds, drops
# what was only being moved.
unreferenced() {
	echo scan >$debug/kmemleak
	sleep 6
	echo scan >$debug/kmemleak
	[ -z "$(cat $debug/kmemleak)" ] || echo scan >$debug/kmemleak
	cat $debug/kmemleak
}

no_leak() {
	leaks=$(unreferenced)
	echo "$leaks"
	[ -z "$leaks" ]
}

# Pages that the module allocated and nobody freed: areas, rings; as lines "PAGES WHERE".
# Blocks of text, one for each page or row of pages, with an empty line behind it; one that
# does not fit into what the reader has room for is an error. Slabs stay for others; their
# objects are kmemleak's. So do page tables of the kernel, and until it is purged KASAN's
# shadow of what is mapped.
owned_pages() {
	dd if=$debug/page_owner bs=16k 2>/dev/null | awk '
		/^Page allocated via order/ {
			for (pages = 1; $5 + 0 > 0; $5 -= 1) pages *= 2
			where = ""; mine = 0; others = 0
			next
		}
		/^PFN .*[(|]slab[|)]/ || /^ (new_slab|allocate_slab)\+/ { others = 1 }
		/kasan_populate_vmalloc|__pte_alloc|__pmd_alloc|__pud_alloc/ { others = 1 }
		/^ / && !mine { sub(/\+.*/, "", $1); where = where " " $1 }
		/\[hamlyn\]/ { mine = 1 }
		/^$/ { if (mine && !others) sum[where] += pages; mine = 0 }
		END { for (where in sum) print sum[where] where }' | sort -k2
}

# Each processor counts for itself for a second or two, if it is not asked
pinned_pages() {
	echo 1 2>/dev/null >/proc/sys/vm/stat_refresh || sleep 3
	awk '$1 == "nr_foll_pin_acquired" { n += $2 } $1 == "nr_foll_pin_released" { n -= $2 }
		END { print n + 0 }' /proc/vmstat
}

# Pages that the module has mapped into the kernel's addresses, in rows
mapped_rows() { grep -c 'hml_[a-z_]*+.*\[hamlyn\]' /proc/vmallocinfo; }
