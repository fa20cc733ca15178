/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A chain that changes while it runs, with handles that free themselves.
 *   chain FOLDER_OF_EXAMPLES
 */
#include <iostream>
#include <string>
#include <vector>

#include <paceline.hpp>

namespace pl = paceline;

static pl::Program load(const std::string &path, const char *name)
{
    pl::Object object(pl::call(paceline_object_open, path.c_str(), nullptr));
    pl::Collection collection(pl::call(paceline_object_load, object.get(), nullptr));
    return pl::Program(pl::call(paceline_collection_program, collection.get(), name));
}

static void run(const char *when, const pl::Worker &worker, const pl::Host &host)
{
    pl::Burst burst(pl::call(paceline_burst_new, PACELINE_MAX_BURST));
    const std::vector<uint8_t> bytes(60);
    auto packet = pl::make<paceline_packet>();
    packet.data = bytes.data();
    packet.length = bytes.size();
    pl::call(paceline_burst_push, burst.get(), &packet, 1, nullptr);
    pl::call(paceline_worker_run_burst, worker.get(), burst.get(), host.get());
    auto frame = pl::make<paceline_frame>();
    pl::call(paceline_burst_frames, burst.get(), &frame, 1, nullptr);
    std::cout << when << ": verdict " << frame.verdict << "\n";
}

int main(int argc, char **argv)
try {
    const std::string examples = argc > 1 ? argv[1] : "examples";
    const pl::Program counter = load(examples + "/counter.o", "counter");
    const pl::Program sampler = load(examples + "/sampler.o", "sample_every");
    auto member = pl::make<paceline_member>();
    member.program = counter.get();
    pl::Chain chain(pl::call(paceline_chain_new, &member, 1, PACELINE_ORDER_GIVEN));
    pl::Worker worker(pl::call(paceline_chain_worker, chain.get(), 1));
    pl::Host host(pl::call(paceline_host_new, 0));
    run("counter", worker, host);

    member.program = sampler.get();
    auto change = pl::make<paceline_change>();
    change.kind = PACELINE_CHANGE_KIND_ADD;
    change.member = &member;
    uint64_t revision = 0;
    pl::call(paceline_chain_change, chain.get(), &change, 1, PACELINE_ANY_REVISION, &revision);
    run("counter, sampler", worker, host);

    try {
        pl::call(paceline_chain_change, chain.get(), &change, 1, revision - 1, nullptr);
    } catch (const pl::Error &error) {
        std::cout << "refused: " << error.what() << "\n";
    }
    worker = pl::Worker();
    std::cout << pl::text(pl::call(paceline_chain_status, chain.get())) << "\n";
} catch (const pl::Error &error) {
    const paceline_error_details details = error.details();
    std::cerr << error.what() << "\n";
    if (details.line)
        std::cerr << details.file << ":" << details.line << ": " << details.source << "\n";
    return 1;
}
