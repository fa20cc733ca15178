//! Verifies a program that reads behind the end of the packet, and shows why it is refused.

use std::error::Error;

use paceline::isa::assemble;
use paceline::{Object, ProgramKind, ProgramSpec, XdpAttach};

const UNSAFE: &str = "
    r2 = *(u32 *)(r1 + 0)   # xdp_md.data
    r0 = *(u8 *)(r2 + 14)   # nobody asked whether the packet is that long
    exit
";

#[allow(clippy::print_stdout, reason = "the refusal is what it is for")]
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let xdp = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let object = Object::of_program(ProgramSpec::new("careless", xdp, assemble(UNSAFE, &())?.encode()?));
    for program in object.programs() {
        match object.verify(program) {
            Ok(verified) => return Err(format!("accepted after {:?}", verified.stats()).into()),
            Err(refused) => {
                println!("{refused}");
                println!("at instruction {}: {:?}", refused.refusal.slot, refused.refusal.cause);
                assert_eq!(refused.refusal.slot, 1);
            }
        }
    }
    Ok(())
}
