// SPDX-License-Identifier: GPL-2.0-only
/*
 * The C++ half of languages-test.sh: a server and a publisher, or a client and subscriber of them.
 * languages.py is the same in Python, and each talks to either.
 */
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include <hamlyn/hamlyn.hpp>

using hamlyn::status;
using namespace std::chrono_literals;

namespace {

constexpr int messages = 200;
constexpr std::size_t big = 300000;
constexpr auto patience = 60s;

void serve(const std::string &path)
{
	bool over = false;
	hamlyn::publisher news(path + ".news");
	hamlyn::server server(path, [&](const hamlyn::incoming &m) {
		status s = m.is_request() ? m.reply(m.view()) : m.send(m.view());

		if (s != status::ok)
			return s;
		if (m.text().substr(0, 4) == "news" && news.send(m.view(), 0s) != status::ok)
			throw std::runtime_error("a subscriber is waited for");
		over = m.text() == "bye";
		return over ? status::end : status::ok;
	});

	std::puts("ready");
	std::fflush(stdout);
	while (!over) {
		(void)server.run(5ms);
		(void)news.run(0s);
	}
	if (server.close(patience) != status::ok || news.close(patience) != status::ok)
		throw std::runtime_error("what was sent has not arrived");
}

std::string take(hamlyn::channel &c)
{
	auto m = c.receive(patience);

	if (!m)
		throw std::runtime_error("no message");
	return std::string(m->view().text());
}

void same(const std::string &got, const std::string &expected)
{
	if (got != expected)
		throw std::runtime_error("another message: " + got.substr(0, 40));
}

void talk(const std::string &path)
{
	auto c = hamlyn::channel::dial(path, patience).value();
	auto news = hamlyn::subscriber::dial(path + ".news", patience).value();
	std::string text(big, 'x');

	for (int i = 0; i < messages; i++) {
		if (c.send("message " + std::to_string(i), patience) != status::ok)
			throw std::runtime_error("cannot send");
		same(take(c), "message " + std::to_string(i));
	}
	for (std::size_t i = 0; i < big; i++)
		text[i] = static_cast<char>('a' + i % 23);
	if (c.send(text, patience) != status::ok)
		throw std::runtime_error("cannot send much");
	same(take(c), text);
	same(std::string(c.request(std::string("asked"), patience).value().view().text()), "asked");
	if (c.send(std::string("news"), patience) != status::ok)
		throw std::runtime_error("cannot send");
	same(take(c), "news");
	same(std::string(news.receive(patience).value().text()), "news");
	if (c.send(std::string("bye"), patience) != status::ok)
		throw std::runtime_error("cannot send");
	same(take(c), "bye");
	if (c.receive(patience).why() != status::end ||
	    news.receive(patience).why() != status::end)
		throw std::runtime_error("it has not ended");
	std::printf("%d messages and one of %zu bytes\n", messages, big);
}

} // namespace

int main(int argc, char **argv)
{
	const std::string what = argc == 3 ? argv[1] : "";

	try {
		if (what == "serve")
			serve(argv[2]);
		else if (what == "talk")
			talk(argv[2]);
		else
			throw std::runtime_error("usage: languages serve|talk HOST/NAME");
	} catch (const std::exception &e) {
		std::fprintf(stderr, "languages: %s\n", e.what());
		return 1;
	}
	return 0;
}
