//! Hosts on the other end of virtual wires.

use std::net::UdpSocket;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use paceline_testkit::namespace::{ip, namespace};
use paceline_testkit::skip;

use super::live::PATIENCE;

/// The other end of a wire: a thread with a namespace of its own, and an interface in it. It ends with the value.
pub(crate) struct Host {
    work: Option<Sender<Box<dyn FnOnce() + Send>>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Host {
    /// Makes a thread and gives it an interface with the address 10.9.0.2. `None` if a test cannot run.
    pub(crate) fn new(test: &'static str, interface: &str) -> Option<Self> {
        // Packets between virtual interfaces have no checksum otherwise.
        let arguments = ["-K", interface, "tx", "off", "gso", "off", "tso", "off", "gro", "off"];
        let set = Command::new("ethtool").args(arguments).output();
        if !set.is_ok_and(|output| output.status.success()) {
            skip(test, &"ethtool is not installed");
            return None;
        }
        let (work, jobs) = channel::<Box<dyn FnOnce() + Send>>();
        let (ready, thread_id) = channel();
        let thread = thread::spawn(move || {
            let made = namespace(test, "");
            let id = std::fs::read_link("/proc/thread-self").expect("this thread");
            let id = id.file_name().expect("an id").to_string_lossy().into_owned();
            ready.send(made.map(|()| id)).expect("a test");
            jobs.into_iter().for_each(|job| job());
        });
        let host = Self { work: Some(work), thread: Some(thread) };
        let id = thread_id.recv().expect("the thread")?;
        ip(&format!("link set {interface} netns {id}")).expect("it is moved");
        let interface = interface.to_owned();
        host.run(move || {
            ip(&format!("link set {interface} up")).expect("it is up");
            ip(&format!("addr add 10.9.0.2/24 dev {interface}")).expect("an address");
        });
        Some(host)
    }

    /// Runs a function in the namespace.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let job = Box::new(move || drop(done.send(job())));
        self.work.as_ref().expect("the thread").send(job).expect("the thread");
        result.recv().expect("the function ends without panic")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.work.take());
        // A panic in it was reported.
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

/// Sends datagrams to the echo port (RFC 862), from different ports, and receives the answers.
pub(crate) fn echoes(count: u32) {
    for number in 0..count {
        let socket = UdpSocket::bind("10.9.0.2:0").expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time");
        socket.send_to(&number.to_be_bytes(), "10.9.0.1:7").expect("it is sent");
        let mut answer = [0; 16];
        let len = socket.recv(&mut answer).expect("an answer");
        assert_eq!(answer[..len], number.to_be_bytes());
    }
}
