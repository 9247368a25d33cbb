# SPDX-License-Identifier: MIT
#
# libhamlyn.a and libhamlyn.so.
LIB_SRC := $(sort $(wildcard libhamlyn/src/*/*.c))
LIB_OBJ := $(LIB_SRC:libhamlyn/src/%.c=$(BUILD)/obj/lib/%.o)
LIB_HDR := $(wildcard libhamlyn/include/*.h libhamlyn/include/hamlyn/*.h libhamlyn/src/*/*.h uapi/linux/*.h)
# Its own headers are named with their folder; the core asks for port_user.h.
LIB_INC := -Ilibhamlyn/src -Ilibhamlyn/src/embedded -iquotedriver/core
LIB_SO := $(BUILD)/libhamlyn.so.$(VERSION)

# The file finds the rest from where it is: two folders below the libraries
CMAKEDIR = $(LIBDIR)/cmake/hamlyn

lib: $(BUILD)/libhamlyn.a $(BUILD)/libhamlyn.so

$(BUILD)/obj/lib/%.o: libhamlyn/src/%.c $(LIB_HDR) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(LIB_INC) $(CFLAGS_ALL) -fPIC -fno-semantic-interposition -c $< -o $@

# Call backs may be left by an exception: that ends what they have begun
$(BUILD)/obj/lib/manager/ready.o: CFLAGS_ALL += -fexceptions

$(BUILD)/libhamlyn.a: $(LIB_OBJ)
	rm -f $@
	$(AR) rcs $@ $^

$(LIB_SO): $(LIB_OBJ) libhamlyn/libhamlyn.map
	$(CC) -shared -Wl,-soname,libhamlyn.so.$(SOVERSION) -Wl,--no-undefined -Wl,-z,nodelete \
		-Wl,--version-script=libhamlyn/libhamlyn.map $(LDFLAGS) \
		$(LIB_OBJ) -o $@ -lpthread

$(BUILD)/libhamlyn.so: $(LIB_SO)
	ln -sf $(<F) $(BUILD)/libhamlyn.so.$(SOVERSION)
	ln -sf libhamlyn.so.$(SOVERSION) $@

install: install-lib
install-lib: lib
	install -d "$(DESTDIR)$(LIBDIR)/pkgconfig" "$(DESTDIR)$(INCLUDEDIR)"
	install -m 644 $(BUILD)/libhamlyn.a "$(DESTDIR)$(LIBDIR)/"
	install -m 755 $(LIB_SO) "$(DESTDIR)$(LIBDIR)/"
	ln -sf libhamlyn.so.$(VERSION) "$(DESTDIR)$(LIBDIR)/libhamlyn.so.$(SOVERSION)"
	ln -sf libhamlyn.so.$(SOVERSION) "$(DESTDIR)$(LIBDIR)/libhamlyn.so"
	install -m 644 libhamlyn/include/hamlyn.h "$(DESTDIR)$(INCLUDEDIR)/"
	install -d "$(DESTDIR)$(INCLUDEDIR)/hamlyn"
	install -m 644 libhamlyn/include/hamlyn/*.h* "$(DESTDIR)$(INCLUDEDIR)/hamlyn/"
	install -m 644 uapi/linux/hamlyn.h "$(DESTDIR)$(INCLUDEDIR)/hamlyn/uapi.h"
	install -m 644 uapi/linux/hamlyn_netlink.h "$(DESTDIR)$(INCLUDEDIR)/hamlyn/uapi_netlink.h"
	$(call fill_in,libhamlyn/libhamlyn.pc.in) > "$(DESTDIR)$(LIBDIR)/pkgconfig/libhamlyn.pc"
	install -d "$(DESTDIR)$(CMAKEDIR)"
	$(call fill_in,libhamlyn/hamlynConfigVersion.cmake.in) >"$(DESTDIR)$(CMAKEDIR)/hamlynConfigVersion.cmake"
	sed -e 's|@INCLUDE_FROM_HERE@|$(shell realpath -m -s --relative-to "$(CMAKEDIR)" "$(INCLUDEDIR)")|' \
		-e "s|@WRAP@|$$(paste -s -d , libhamlyn/tempest/wrap/wrap.opt)|" \
		libhamlyn/hamlynConfig.cmake.in >"$(DESTDIR)$(CMAKEDIR)/hamlynConfig.cmake"
	install -D -m 644 libhamlyn/tsan.suppressions "$(DESTDIR)$(DATADIR)/hamlyn/tsan.suppressions"

.PHONY: lib install-lib
