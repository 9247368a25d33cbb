# SPDX-License-Identifier: GPL-2.0-only
# C++ and Python between hosts; for guests, too.
$(BUILD)/languages: selftests/bindings/languages/languages.cc $(BUILD)/libhamlyn.a $(LIB_HDR)
	$(CXX) $(CPPFLAGS_ALL) -std=c++17 -O2 -g -Wall -Wextra -static $< $(BUILD)/libhamlyn.a \
		-lpthread -o $@

# Made anew each time: the interpreter and its modules are the system's.
languages-python: $(BUILD)/libhamlyn.so
	@rm -rf $(BUILD)/python
	@HAMLYN_LIBRARY=$(abspath $<) PYTHONPATH=libhamlyn/python PYTHONDONTWRITEBYTECODE=1 \
		python3 selftests/bindings/languages/python.py $(BUILD)/python

languages-test: $(BUILD)/languages languages-python

.PHONY: languages-python languages-test
