//! Writes the shipped capture, `traffic.pcap` and `traffic.pcapng`, into a folder.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(folder), None) = (arguments.next(), arguments.next()) else {
        let _ = writeln!(std::io::stderr(), "usage: paceline-traffic FOLDER");
        return ExitCode::from(2);
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ =
                writeln!(std::io::stderr(), "paceline-traffic: {}: {error}", Path::new(&folder).display());
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::write(folder.join("traffic.pcap"), paceline_testkit::traffic::pcap()?)?;
    std::fs::write(folder.join("traffic.pcapng"), paceline_testkit::traffic::pcapng())?;
    Ok(())
}
