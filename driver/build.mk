# SPDX-License-Identifier: GPL-2.0-only
#
# The module, out of a kernel tree; within it is Kbuild's.
#: make modules    hamlyn.ko into build/, for KERNEL=6.1|6.12|7.2|debug|kcsan or KDIR=FOLDER
CORE := $(wildcard driver/core/*.c driver/core/*.h)

ifdef KDIR
MODULE_FOR := $(abspath $(KDIR))
MODULE_OUT := $(BUILD)/kdir
else
MODULE_FOR := $(KERNEL)
MODULE_OUT := $(BUILD)/k$(KERNEL)
endif

modules:
ifndef KDIR
	@selftests/setup.sh packages vm
	@selftests/setup.sh kernel $(KERNEL)
endif
	selftests/vm/build-module.sh $(MODULE_FOR) . $(MODULE_OUT) $(KBUILD_ARGS)
	cp $(MODULE_OUT)/hamlyn.ko $(BUILD)/hamlyn.ko

.PHONY: modules
