//! The kernel's classic filters, on packet sockets in a private network namespace, and the kernel's checker of seccomp
//! programs.
#![allow(unsafe_code)]

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use paceline_classic::SockFilter;

/// Minimum length of a packet that can be sent: an Ethernet header.
pub const MIN_PACKET: usize = 14;

const LOOPBACK: i32 = 1;

pub(crate) fn checked(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

fn socket(domain: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> Result<OwnedFd> {
    // SAFETY: takes numbers; the result is a new descriptor without another owner.
    unsafe { Ok(OwnedFd::from_raw_fd(checked(libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol))?)) }
}

fn set_option<T>(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &T) -> Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value lives for the call and has that size; filters name memory that lives in the caller.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), len) };
    checked(result).map(drop)
}

/// Attaches a filter to a socket.
fn attach(socket: &OwnedFd, insns: &[SockFilter]) -> Result<()> {
    let mut insns: Vec<libc::sock_filter> = insns.iter().map(to_libc).collect();
    let len = u16::try_from(insns.len()).map_err(|_| Error::from_raw_os_error(libc::EINVAL))?;
    let program = libc::sock_fprog { len, filter: insns.as_mut_ptr() };
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn to_libc(&SockFilter { code, jt, jf, k }: &SockFilter) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// The error of attaching a program to a socket; `None` if the kernel accepts it.
///
/// # Errors
/// A socket cannot be created.
pub fn attach_errno(insns: &[SockFilter]) -> Result<Option<i32>> {
    let socket = socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0)?;
    Ok(attach(&socket, insns).err().and_then(|error| error.raw_os_error()))
}

/// Whether the kernel accepts a seccomp program, tested in a child process that then ends.
///
/// # Errors
/// The process cannot be created.
pub fn seccomp_accepts(insns: &[SockFilter]) -> Result<bool> {
    const SET_MODE_FILTER: libc::c_long = 1;
    const REFUSED: i32 = 7;
    let mut insns: Vec<libc::sock_filter> = insns.iter().map(to_libc).collect();
    let Ok(len) = u16::try_from(insns.len()) else { return Ok(false) };
    let program = libc::sock_fprog { len, filter: insns.as_mut_ptr() };
    // SAFETY: the child does nothing but system calls with memory that was made before, and ends: if the program keeps
    // it from exiting, by an instruction that does not exist.
    unsafe {
        let child = checked(libc::fork())?;
        if child == 0 {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            if libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, 0, &raw const program) != 0 {
                libc::_exit(REFUSED);
            }
            libc::syscall(libc::SYS_exit_group, 0);
            std::process::abort();
        }
        let mut status = 0;
        checked(libc::waitpid(child, &raw mut status, 0))?;
        Ok(!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == REFUSED))
    }
}

/// Moves the calling thread, and the processes that it starts from then on, to a new network namespace.
///
/// # Errors
/// The process may not do this.
pub fn own_network() -> Result<()> {
    // SAFETY: changes the calling thread's namespace only.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// The loopback interface of a new network namespace, which the calling thread enters.
pub struct Interface {
    sender: OwnedFd,
    /// Receives every packet after the filtered socket.
    witness: OwnedFd,
    filtered: OwnedFd,
}

impl Interface {
    /// Moves the calling thread to a new network namespace, without addresses so that nothing answers packets.
    ///
    /// # Errors
    /// The process may not do this.
    pub fn new() -> Result<Self> {
        own_network()?;
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
        let control = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        // SAFETY: all zeros is a valid request; the name fits and ends with a zero.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        // SAFETY: the request is what these commands take.
        unsafe {
            checked(libc::ioctl(control.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request))?;
            let mut address: libc::ifreq = std::mem::zeroed();
            address.ifr_name = request.ifr_name;
            address.ifr_ifru.ifru_addr.sa_family = libc::AF_INET as libc::sa_family_t;
            // Removes 127.0.0.1; fails harmlessly if there is no address.
            libc::ioctl(control.as_raw_fd(), libc::SIOCSIFADDR, &raw const address);
        }
        // Sockets that were bound later receive packets first.
        let witness = packet_socket(LOOPBACK)?;
        let filtered = packet_socket(LOOPBACK)?;
        let sender = socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        let second = libc::timeval { tv_sec: 1, tv_usec: 0 };
        set_option(&witness, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &second)?;
        Ok(Self { sender, witness, filtered })
    }

    /// Replaces the filter.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn attach(&self, insns: &[SockFilter]) -> Result<()> {
        attach(&self.filtered, insns)
    }

    /// Sends a packet and returns how many of its bytes passed the filter; 0 for none.
    ///
    /// # Errors
    /// It cannot be sent: it is shorter than [`MIN_PACKET`].
    pub fn run(&self, packet: &[u8]) -> Result<usize> {
        let mut buffer = vec![0; 65_536];
        while receive(&self.filtered, &mut buffer, libc::MSG_DONTWAIT).is_ok() {}
        while receive(&self.witness, &mut buffer, libc::MSG_DONTWAIT).is_ok() {}
        let address = link_address(LOOPBACK);
        let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: packet and address live for the call and have these lengths.
        let sent = unsafe {
            let address = (&raw const address).cast();
            libc::sendto(self.sender.as_raw_fd(), packet.as_ptr().cast(), packet.len(), 0, address, len)
        };
        if sent < 0 {
            return Err(Error::last_os_error());
        }
        loop {
            let len = receive(&self.witness, &mut buffer, 0)?;
            if buffer.get(..len) == Some(packet) {
                break;
            }
        }
        match receive(&self.filtered, &mut buffer, libc::MSG_DONTWAIT) {
            Ok(len) => Ok(len),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }
}

fn link_address(ifindex: i32) -> libc::sockaddr_ll {
    // SAFETY: all zeros is a valid address.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = ifindex;
    address
}

/// A socket that receives incoming packets of an interface, and not outgoing ones.
pub(crate) fn packet_socket(ifindex: i32) -> Result<OwnedFd> {
    let socket = socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    const IGNORE_OUTGOING: libc::c_int = 23;
    set_option(&socket, libc::SOL_PACKET, IGNORE_OUTGOING, &1i32)?;
    let address = link_address(ifindex);
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address lives for the call and has this length.
    checked(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) })?;
    Ok(socket)
}

pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8], flags: libc::c_int) -> Result<usize> {
    // SAFETY: the buffer is ours and has this length.
    let len = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) };
    usize::try_from(len).map_err(|_| Error::last_os_error())
}
