# SPDX-License-Identifier: GPL-2.0-only
#: make demo       set-up, then the main job on both devices

tools: $(BUILD)/as_user

$(BUILD)/as_user: tools/demo/as_user.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -static $< -o $@

demo:
	@selftests/setup.sh packages native
	@selftests/setup.sh packages vm
	@selftests/setup.sh qemu
	@$(MAKE) --no-print-directory -s all
	@$(MAKE) --no-print-directory -s modules KERNEL=$(KERNEL)
	@tools/demo/demo.sh --build $(BUILD) --kernel $(KERNEL)

.PHONY: demo
