// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each test of the harness is a process that ends by _exit(), and so do most
 * processes that tests start; what they have executed would not be counted.
 * Linked with --wrap=_exit by selftests/coverage.sh.
 */
void __gcov_dump(void);
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);

_Noreturn void __wrap__exit(int status)
{
	__gcov_dump();
	__real__exit(status);
}
