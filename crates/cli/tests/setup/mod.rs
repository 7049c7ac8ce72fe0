//! `sayso setup`, `sayso doctor` and `sayso service`, with a home folder of their own.

mod crash;
mod doctor;
mod harnesses;
mod mcp;
mod service;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use testing::cli::{CommandOutput, KillTimer, binary, check_output};

/// A home folder, with a folder for programs that is the only one on the path.
struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "bin", "project", "runtime"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    /// Returns a path below the home folder.
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("home").join(name)
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn runtime(&self) -> PathBuf {
        self.folder.path().join("runtime")
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Puts a shell script on the path.
    fn add_program(&self, name: &str, script: &str) {
        let path = self.folder.path().join("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Creates a command that sees only this home folder.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.path(""))
            .env("PATH", self.folder.path().join("bin"))
            .env("XDG_RUNTIME_DIR", self.runtime())
            .current_dir(self.project())
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        run_command(self.command(binary()).args(arguments))
    }

    /// Returns all files below the home folder, without the records of sayso.
    fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        list_files(&self.path(""), &mut files);
        let root = self.path("").display().to_string();
        files
            .iter()
            .map(|file| file.trim_start_matches(&root).to_owned())
            .filter(|file| !file.starts_with(".local/"))
            .collect()
    }
}

fn run_command(command: &mut Command) -> CommandOutput {
    let child = command.spawn().unwrap();
    let _timer = KillTimer::start(child.id());
    check_output(child.wait_with_output().unwrap())
}

fn list_files(folder: &Path, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            list_files(&path, files);
        } else {
            files.push(path.display().to_string());
        }
    }
}
