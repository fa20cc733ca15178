//! A touch of a page beside a block ends the process, and nothing else does.

use std::alloc::Layout;
use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use paceline_frame::guard::{Side, alloc_zeroed, dealloc, enable, is_on};

const CHILD: &str = "PACELINE_GUARD_TEST_TOUCH";
/// Neither a whole page nor a multiple of the machine's word.
const LEN: usize = 4096 + 40;

/// In a child: makes a block, uses all of it, and reads the byte so far from its first one.
#[test]
fn touch() {
    let Ok(wanted) = env::var(CHILD) else { return };
    let (side, offset) = wanted.split_once(' ').unwrap();
    let offset: isize = offset.parse().unwrap();
    let side = match side {
        "start" => Some(Side::Start),
        "end" => Some(Side::End),
        _ => None,
    };
    assert!(side.is_none_or(enable));
    assert_eq!(is_on(), side.is_some());
    let layout = Layout::from_size_align(LEN, 8).unwrap();
    // SAFETY: the size is not zero; the block is used within its bounds and freed once. The one read outside of it is of memory
    // that nobody owns, by an instruction of which the compiler knows nothing.
    unsafe {
        let block = alloc_zeroed(layout);
        assert!(!block.is_null() && block.addr().is_multiple_of(8));
        for index in 0..LEN {
            assert_eq!(block.add(index).read(), 0);
            block.add(index).write(1);
        }
        #[cfg(target_arch = "x86_64")]
        std::arch::asm!("mov {0}, byte ptr [{1}]", out(reg_byte) _, in(reg) block.wrapping_offset(offset));
        #[cfg(not(target_arch = "x86_64"))]
        block.wrapping_offset(offset).read_volatile();
        dealloc(block, layout);
    }
}

/// The signal that ends a child which touches a byte, if one does.
fn signal(side: &str, offset: isize) -> Option<i32> {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "touch"]).env(CHILD, format!("{side} {offset}"));
    let output = child.output().unwrap();
    assert!(output.status.success() || output.status.signal().is_some(), "{output:?}");
    output.status.signal()
}

#[test]
fn a_touch_of_a_page_beside_a_block_is_a_fault() {
    const SIGSEGV: Option<i32> = Some(11);
    let len = LEN as isize;
    for side in ["start", "end"] {
        assert_eq!([signal(side, 0), signal(side, len - 1)], [None; 2], "{side}");
    }
    assert_eq!([signal("start", -1), signal("end", len)], [SIGSEGV; 2]);
    // On the other side there is one behind what fills the page.
    assert_eq!([signal("start", 8192), signal("end", len - 8192 - 1)], [SIGSEGV; 2]);
}
