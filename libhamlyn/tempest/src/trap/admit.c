// SPDX-License-Identifier: MIT
#include "base/error.h"
#include "base/quiet.h"
#include "memory/view.h"
#include "thread/thread.h"
#include "trap/admit.h"

/* An access within one page that is uniform: the next ones will not trap. */
static bool open_page(const struct tempest_access *access)
{
	uintptr_t page = tempest_page_of(access->va);

	return page == tempest_page_of(access->va + access->size - 1) &&
	       tempest_view_open(page, tempest_need(access->write));
}

/* Handlers run in the only thread that could resume them. */
static void must_be_able_to_wait(const struct tempest_access *access, uintptr_t va)
{
	if (tempest_is_protocol)
		tempest_die("a handler conflicts with the tag of what it accesses, %p, at %p",
			    (void *)va, (void *)access->pc);
}

/*
 * A thread that has been suspended does not open the page: a recall might close it before
 * the processor has tried again, and so on forever. What is in flight is waited for.
 */
enum tempest_admitted tempest_admit(struct tempest_thread *thread,
				    const struct tempest_access *access, bool may_open)
{
	struct tempest_fault *fault = &thread->fault;
	uintptr_t va;
	bool is_page;

	fault->access = *access;
	fault->resumes = 0;
	for (;;) {
		if (!tempest_fault_conflict(access, &va, &is_page)) {
			if (may_open && !fault->resumes && open_page(access))
				return ADMIT_OPENED;
			/* Announced first, then looked at: a downgrade does the reverse */
			tempest_thread_enter(thread, access->va, access->size);
			if (!tempest_fault_conflict(access, &va, &is_page))
				return ADMIT_IN_FLIGHT;
			tempest_thread_leave(thread);
		}
		must_be_able_to_wait(access, va);
		if (tempest_fault_suspend(thread, va, is_page))
			return ADMIT_IN_FLIGHT;
	}
}
