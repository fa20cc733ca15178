/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * paceline.h for C++17: handles that free themselves, errors as exceptions. All of the C interface works beside it.
 */
#ifndef PACELINE_HPP
#define PACELINE_HPP

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "paceline.h"

namespace paceline {

/* A call that failed. */
class Error : public std::runtime_error {
public:
    explicit Error(paceline_error *error)
        : std::runtime_error(paceline_error_message(error)), error_(error, paceline_error_free) {}

    /* Everything that is known; texts live as long as the exception. */
    paceline_error_details details() const
    {
        paceline_error_details details{};
        details.size = sizeof details;
        paceline_error_read(error_.get(), &details);
        return details;
    }

private:
    std::shared_ptr<paceline_error> error_;
};

/* Calls with an error handle, and throws what it gets: paceline::call(paceline_map_freeze, map.get()). */
template <typename Function, typename... Arguments>
auto call(Function function, Arguments... arguments)
{
    paceline_error *error = nullptr;
    auto result = function(arguments..., &error);
    if (error)
        throw Error(error);
    return result;
}

/* A handle with one owner. */
template <typename T, paceline_status (*free)(T *)> class Handle {
public:
    explicit Handle(T *handle = nullptr) : handle_(handle) {}
    ~Handle() { free(handle_); }
    Handle(Handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Handle &operator=(Handle &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    T *get() const { return handle_; }

private:
    T *handle_;
};

using Object = Handle<paceline_object, paceline_object_free>;
using Collection = Handle<paceline_collection, paceline_collection_free>;
using Program = Handle<paceline_program, paceline_program_free>;
using Map = Handle<paceline_map, paceline_map_free>;
using Chain = Handle<paceline_chain, paceline_chain_free>;
using Worker = Handle<paceline_worker, paceline_worker_free>;
using Burst = Handle<paceline_burst, paceline_burst_free>;
using Pool = Handle<paceline_pool, paceline_pool_free>;
using Host = Handle<paceline_host, paceline_host_free>;
using Filter = Handle<paceline_filter, paceline_filter_free>;
using Builder = Handle<paceline_builder, paceline_builder_free>;

/* A structure of the interface: its size is set, the rest is zero. */
template <typename T> T make()
{
    T structure{};
    structure.size = sizeof structure;
    return structure;
}

/* A text that the library gave, freed; empty for none. */
inline std::string text(char *text)
{
    std::string copy = text ? text : "";
    paceline_string_free(text);
    return copy;
}

} // namespace paceline

#endif
