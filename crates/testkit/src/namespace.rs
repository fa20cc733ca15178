//! Network namespaces of tests, with pairs of virtual interfaces.

use std::process::Command;

use super::classic::packet_socket::own_network;
use crate::skip;

/// Moves this thread to a network namespace of its own and runs the lines of a script of `ip` in it, each the arguments of a call.
/// `None`, after a message that names the test, without the permission or `ip`.
#[must_use]
pub fn namespace(test: &str, script: &str) -> Option<()> {
    let made = own_network().map_err(|error| paceline::with_causes(&error)).and_then(|()| {
        // IPv6 sends packets of its own.
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        ip("-V")?;
        script.lines().map(str::trim).filter(|line| !line.is_empty()).try_for_each(ip)
    });
    made.map_err(|error| skip(test, &error)).ok()
}

/// Runs `ip` with arguments that are separated by blanks.
///
/// # Errors
/// Its message.
pub fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split_whitespace()).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// A pair of virtual interfaces, up.
#[must_use]
pub fn veth(one: &str, other: &str) -> String {
    format!("link add {one} type veth peer name {other}\nlink set {one} up\nlink set {other} up\n")
}
