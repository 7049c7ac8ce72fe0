//! A headless desktop: a screen, a window manager, the accessibility bus, Orca and a browser. Dropping the desktop ends
//! all of them.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fake_dispatcher;
use super::simulated_synthesizer::SimulatedSynthesizer;
use crate::debian;
use crate::stage::{command_output, succeeds};

/// How long to wait for a program to start or end.
const PROGRAM_TIMEOUT: Duration = Duration::from_mins(2);
/// An environment variable that marks every process of the desktop, including those that other programs started.
const PROCESS_MARK_VARIABLE: &str = "XTASK_DESKTOP";

#[derive(Clone, Copy)]
pub(super) enum Browser {
    Firefox,
    Chromium,
}

pub(super) struct Desktop {
    pub(super) synthesizer: Arc<SimulatedSynthesizer>,
    folder: PathBuf,
    environment: Vec<(&'static str, String)>,
    started: RefCell<Vec<Child>>,
}

impl Browser {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Firefox => "Firefox",
            Self::Chromium => "Chromium",
        }
    }

    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Firefox => "firefox-esr",
            Self::Chromium => "chromium",
        }
    }

    /// Returns a sentence with the versions of the tested packages and today's date.
    pub(super) fn versions(self) -> Result<String, String> {
        let package = |name| debian::version(name).ok_or_else(|| format!("{name} is not installed"));
        let (orca, browser) = (package("orca")?, package(self.program())?);
        let day = command_output(Command::new("date").args(["-u", "+%Y-%m-%d"]))?;
        Ok(format!("Debian's packages orca {orca} and {} {browser}, recorded on {day}.", self.program()))
    }

    fn prepare_arguments(self, folder: &Path) -> Result<Vec<String>, String> {
        let profile = folder.join("profile");
        let path = profile.display();
        match self {
            Self::Firefox => {
                fs::write(profile.join("user.js"), FIREFOX_PREFERENCES)
                    .map_err(|error| format!("{path}: {error}"))?;
                Ok(vec!["--no-remote".to_owned(), "--profile".to_owned(), path.to_string()])
            }
            Self::Chromium => {
                let mut arguments: Vec<String> = CHROMIUM_ARGUMENTS.map(str::to_owned).into();
                arguments.push(format!("--user-data-dir={path}"));
                // Chromium's sandbox does not run as root.
                if command_output(Command::new("id").arg("-u"))? == "0" {
                    arguments.extend(["--no-sandbox", "--test-type"].map(str::to_owned));
                }
                Ok(arguments)
            }
        }
    }
}

/// Preferences that turn off first-run pages, update checks and connections to other servers.
const FIREFOX_PREFERENCES: &str = r#"user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("browser.preonboarding.enabled", false);
user_pref("termsofuse.bypassNotification", true);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("datareporting.policy.dataSubmissionPolicyBypassNotification", true);
user_pref("security.sandbox.warn_unprivileged_namespaces", false);
user_pref("app.normandy.enabled", false);
user_pref("app.update.enabled", false);
user_pref("extensions.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("network.proxy.type", 0);
user_pref("accessibility.force_disabled", -1);
"#;

const CHROMIUM_ARGUMENTS: [&str; 10] = [
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-proxy-server",
    "--password-store=basic",
    "--force-renderer-accessibility",
];

impl Desktop {
    /// Starts everything except the browser, and waits until Orca has announced itself.
    pub(super) fn open(name: &str) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("sayso-hear-{}-{name}", std::process::id()));
        let mut desktop = Self {
            synthesizer: SimulatedSynthesizer::start(),
            environment: environment(&folder),
            folder,
            started: RefCell::default(),
        };
        write_settings(&desktop.folder).map_err(|error| format!("{}: {error}", desktop.folder.display()))?;
        fake_dispatcher::listen(&desktop.folder.join("speechd"), &desktop.synthesizer)?;

        let screen = ["-displayfd", "1", "-screen", "0", "1280x1000x24", "-nolisten", "tcp", "-noreset"];
        let display = desktop.start_and_read_address("Xvfb", &screen)?;
        desktop.environment.push(("DISPLAY", format!(":{display}")));
        let bus =
            desktop.start_and_read_address("dbus-daemon", &["--session", "--nofork", "--print-address"])?;
        desktop.environment.push(("DBUS_SESSION_BUS_ADDRESS", bus));
        desktop.start(desktop.command("openbox").arg("--sm-disable"))?;
        for property in ["IsEnabled", "ScreenReaderEnabled"] {
            desktop.enable(property)?;
        }
        desktop.start(&mut desktop.command("orca"))?;
        desktop.synthesizer.wait_for("Screen reader on.")?;
        Ok(desktop)
    }

    /// Opens the page in a browser and gives the browser the keyboard focus.
    pub(super) fn open_page(&self, browser: Browser, address: &str) -> Result<(), String> {
        let arguments = browser.prepare_arguments(&self.folder)?;
        self.start(self.command(browser.program()).args(arguments).arg(format!("http://{address}/")))?;
        let activate_window = ["search", "--onlyvisible", "--class", browser.program(), "windowactivate"];
        let deadline = Instant::now() + PROGRAM_TIMEOUT;
        while Instant::now() < deadline {
            if succeeds(self.command("xdotool").args(activate_window)) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Err(format!("{} showed no window", browser.name()))
    }

    /// Returns a path in the folder of the desktop, which is removed at the end.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Presses a key and records it in the transcript.
    pub(super) fn press(&self, key: &str) -> Result<(), String> {
        self.synthesizer.record_key(key.to_owned());
        run_checked(self.command("xdotool").args(["key", key]))
    }

    /// Returns a command for a program of the desktop. The program is killed when this process ends for any reason.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts a program that keeps running. Returns its piped output, or an empty stream if its output is not piped.
    pub(super) fn start(&self, program: &mut Command) -> Result<Box<dyn Read + Send>, String> {
        let mut child =
            program.spawn().map_err(|error| format!("{program:?} could not be started: {error}"))?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        self.started.borrow_mut().push(child);
        Ok(match (output, errors) {
            (Some(output), _) => Box::new(output),
            (None, Some(errors)) => Box::new(errors),
            (None, None) => Box::new(std::io::empty()),
        })
    }

    /// Starts a program that prints its address in the first line. Returns that line.
    fn start_and_read_address(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let output = self.start(self.command(program).args(arguments).stdout(Stdio::piped()))?;
        let line = BufReader::new(output).lines().next();
        line.and_then(Result::ok).ok_or_else(|| format!("{program} did not start"))
    }

    /// Sets a property of the accessibility bus. Browsers expose their content only if the bus reports a screen reader.
    fn enable(&self, property: &str) -> Result<(), String> {
        let call = ["--session", "--print-reply", "--dest=org.a11y.Bus", "/org/a11y/bus"];
        let set = ["org.freedesktop.DBus.Properties.Set", "string:org.a11y.Status"];
        let value = [&format!("string:{property}"), "variant:boolean:true"];
        run_checked(self.command("dbus-send").args(call).args(set).args(value))
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        for child in self.started.get_mut().iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
        // Kill the processes that these programs started and that are still running.
        let mark = format!("{PROCESS_MARK_VARIABLE}={}", self.folder.display());
        let deadline = Instant::now() + PROGRAM_TIMEOUT;
        while Instant::now() < deadline {
            let remaining = marked_processes(mark.as_bytes());
            if remaining.is_empty() {
                break;
            }
            let _ = succeeds(Command::new("kill").arg("-KILL").args(remaining));
            std::thread::sleep(Duration::from_millis(100));
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the ids of processes with this entry in their environment.
fn marked_processes(mark: &[u8]) -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|process| {
            fs::read(process.path().join("environ"))
                .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == mark))
        })
        .filter_map(|process| process.file_name().into_string().ok())
        .collect()
}

fn write_settings(folder: &Path) -> std::io::Result<()> {
    for name in ["home", "run", "profile", "bin"] {
        fs::create_dir_all(folder.join(name))?;
    }
    fs::set_permissions(folder.join("run"), Permissions::from_mode(0o700))?;
    // Orca does not start if pgrep finds another Orca of this user. This replacement for pgrep finds nothing.
    fs::write(folder.join("bin/pgrep"), "#!/bin/sh\nexit 1\n")?;
    fs::set_permissions(folder.join("bin/pgrep"), Permissions::from_mode(0o755))
}

/// Returns an environment without the settings and the desktop of the current user.
fn environment(folder: &Path) -> Vec<(&'static str, String)> {
    let path_in_folder = |name: &str| folder.join(name).display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    vec![
        (PROCESS_MARK_VARIABLE, folder.display().to_string()),
        ("PATH", format!("{}:{path}", path_in_folder("bin"))),
        ("HOME", path_in_folder("home")),
        ("XDG_RUNTIME_DIR", path_in_folder("run")),
        ("XDG_SESSION_TYPE", "x11".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("GSETTINGS_BACKEND", "memory".to_owned()),
        ("GNOME_ACCESSIBILITY", "1".to_owned()),
        ("LIBGL_ALWAYS_SOFTWARE", "1".to_owned()),
        ("SPEECHD_ADDRESS", format!("unix_socket:{}", path_in_folder("speechd"))),
    ]
}

fn run_checked(command: &mut Command) -> Result<(), String> {
    if succeeds(command) { Ok(()) } else { Err(format!("{} failed", command.get_program().display())) }
}
