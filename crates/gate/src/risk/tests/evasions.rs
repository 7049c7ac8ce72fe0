//! Commands that an agent could use to hide what it does. None of them may be called harmless.

use super::*;

#[test]
fn quotes_and_escapes_do_not_hide_a_program() {
    assert_none_harmless(&[
        "r\\m a",
        "\"rm\" a",
        "r\"\"m a",
        "$'\\162\\155' a",
        "$\"rm\" a",
        "$(printf rm) a",
        "ls;$'\\n'rm a",
        "ls\u{2028}rm a",
        "\u{ff4c}\u{ff53}",
        "l\u{455}",
        "ls\u{200b}",
        "'ls ' a",
        "ls\\ -l",
        "''ls''x a",
        "{rm,a}",
        "r{m,} a",
        "~/ls",
        "*/ls",
        "[l]s",
        "echo \"${x:-$(rm a)}\"",
        "echo \"${ rm a; }\"",
        "echo \"${| rm a; }\"",
        "echo ${x@P}",
        "echo ${!x}",
        "echo \"$(echo '$(' ; rm a)\"",
        "echo \"$(ls \"$(rm a)\")\"",
        "echo a\"$(echo \"b$(rm a)c\")\"d",
        "echo \"\\\\$(rm a)\"",
        "echo \"'$(rm a)'\"",
        "echo '\"'\"$(rm a)\"'\"'",
    ]);
}

#[test]
fn here_documents_and_other_syntax_do_not_hide_a_program() {
    assert_none_harmless(&[
        "cat <<'A'\n$(ls)\nA\nrm a",
        "cat <<-A\n\tx\n\tA\nrm a",
        "cat <<A; rm a\nx\nA",
        "cat <#'\nrm a\n'",
        "cat <<<\"$(rm a)\"",
        "cat <<< a | rm b",
        "cat >(rm a)",
        "ls >#a",
        "tee >(rm a) < b",
        "coproc rm a",
        "time rm a",
        "[[ a == b ]] || rm a",
        "case a in a) rm a;; esac",
        "select x in a; do rm a; done",
        "function ls { rm a; }; ls",
        "ls() { rm a; }\nls",
        "alias ls='rm a'\nls",
        "trap 'rm a' EXIT",
        "trap 'rm a' DEBUG; ls",
        "set -- rm a; \"$@\"",
        "export PATH=/tmp; ls",
        "declare -x PATH=/tmp",
        "PATH+=:/tmp; ls",
        "hash -p /tmp/rm ls; ls",
        "enable -f /tmp/a.so ls",
        "shopt -s expand_aliases",
        "mapfile -C 'rm a' -c 1 x",
        "read x; $x",
        "let 'a[$(rm a)]=1'",
        "complete -C 'rm a' ls",
        "bind -x '\"a\":rm a'",
        "fc -s",
        "history -s ls",
        "repeat 2 rm a",
        "nocorrect rm a",
        "- rm a",
        "echo *(e:'rm a':)",
        "echo =(rm a)",
        "ls &! rm a",
        "() { rm a; }",
        "begin; rm a; end",
        "and rm a",
        "ls <<<a;;rm a",
        "ls;(rm a)|cat",
        "ls |& rm a",
        "ls || (cd a && rm b)",
        "echo {1..3} > \"$(rm a)\"",
    ]);
}

#[test]
fn the_environment_of_a_program_cannot_be_changed() {
    assert_none_harmless(&[
        "LC_ALL=/tmp/a ls",
        "LANG=$X ls",
        "TZ=:/tmp/a ls",
        "TZ=/tmp/a ls",
        "LANG=../a ls",
        "env LC_ALL=/tmp/a ls",
        "env -i ls",
        "env - ls",
        "env -u PATH ls",
        "env -uPATH ls",
        "env --unset=PATH ls",
        "env -C a ls",
        "env --chdir=a git status",
        "env --split-string='rm a'",
        "env -vS 'rm a'",
        "BASH_ENV=a bash -c ls",
        "ENV=a sh -c ls",
        "PS4='$(rm a)' bash -xc ls",
        "IFS=x ls",
        "LESSOPEN='|rm a' ls",
        "GIT_DIR=a git status",
        "GIT_PAGER='rm a' git log",
        "PAGER=rm git log",
        "GIT_EXTERNAL_DIFF=rm git diff",
        "GREP_OPTIONS=a grep b c",
        "RIPGREP_CONFIG_PATH=a rg b",
        "JQ_COLORS=a PATH=b jq .",
        "LD_LIBRARY_PATH=a ls",
        "TERMINFO=a ls",
        "PYTHONSTARTUP=a python3 --version",
        "NODE_OPTIONS='--require ./a' node --version",
        "MAKEFLAGS=a make --version",
    ]);
}

#[test]
fn programs_that_run_others_are_risky() {
    assert_none_harmless(&[
        "tar cf /dev/null a --checkpoint=1 --checkpoint-action=exec=rm",
        "tar xf a --to-command='rm a'",
        "tar xf a -I 'rm a'",
        "zip -TT 'rm a' -T b.zip c",
        "zip a.zip b -T --unzip-command='rm a'",
        "ssh -o ProxyCommand='rm a' b",
        "rsync -e 'rm a' b c:",
        "scp -S rm a b:",
        "awk 'BEGIN { system(\"rm a\") }'",
        "gawk 'BEGIN { print | \"rm a\" }'",
        "mawk '{ \"rm a\" | getline }' b",
        "sed '1e rm a' b",
        "sed -n '1e' b",
        "sed -n 's/a/rm/ep' b",
        "sed -n '1w out' b",
        "sed -n 1p -i b",
        "sed -n 1p --in-place b",
        "sed -ni 1p b",
        "sed -n -f a",
        "sed -n 1p -e '1e rm' b",
        "sed -n 1,2p -- -i b",
        "vim -c '!rm a' -c q",
        "ed a",
        "ex -sc '!rm a'",
        "perl -e 'unlink a'",
        "python3 -c 'import os'",
        "python3 -m http.server",
        "ruby -e x",
        "node -e x",
        "php -r x",
        "npm run build",
        "npx a",
        "make",
        "make -n",
        "cargo check",
        "man -P 'rm a' ls",
        "less a",
        "more a",
        "watch rm a",
        "parallel rm ::: a",
        "flock a rm b",
        "script -c 'rm a'",
        "unshare rm a",
        "chroot a ls",
        "nsenter ls",
        "systemd-run rm a",
        "at now",
        "batch",
        "busybox rm a",
        "ld.so /bin/rm a",
        "/lib64/ld-linux-x86-64.so.2 /bin/rm a",
        "strace -o a ls",
        "gdb -ex 'shell rm a'",
        "openssl enc -in a -out b",
        "split a",
        "csplit a 1",
        "pr a",
        "find . -exec rm {} +",
        "find . -ok rm {} ;",
        "find . -fls a",
        "find . -fprint0 a",
        "fd -x rm",
        "fd . -X rm",
        "rg --pre rm a",
        "rg -z a",
        "rg --search-zip a",
        "ag --pager rm a",
        "sort --compress-program=rm -S 1 a",
        "sort --compress-prog rm a",
        "sort -zo a b",
        "file -z a",
        "file -m a b",
        "file --magic-file=a b",
        "file -Cm a",
        "diff -l a b",
        "diff --pag a b",
        "getconf -v ../../tmp/a PATH",
        "xxd a -b",
        "uniq a -b",
        "xxd -r a",
        "tree -o a",
        "tree -R -H . -L 2",
        "date -s 2020-01-01",
        "hostname a",
        "jobs -x rm a",
        "dd if=a of=b",
        "cat /dev/watchdog",
        "head -c 1 /dev/st0",
        "cat //dev/watchdog",
        "cd /dev; cat watchdog",
        "cat \"/dev/$X\"",
        "mysql -e x",
        "docker run a",
        "kubectl delete a",
        "gh repo delete a",
        "journalctl --vacuum-size=1",
        "dmesg -C",
        "ip link set a down",
        "mount a b",
        "sysctl -w a=b",
        "stty -a < /dev/tty",
        "reset",
        "tput init",
        "command -p rm a",
        "command -- rm a",
        "builtin eval rm",
        "stdbuf -o0 rm a",
        "ionice -c 3 rm a",
        "setsid rm a",
        "nice rm a",
        "timeout -s KILL 5 rm a",
        "timeout --preserve-status 5 rm a",
        "xargs -a b rm",
        "xargs -0 rm",
        "sh -s < a",
        "sh < a",
        "bash -i",
        "bash -O extglob -c 'rm a'",
        "bash --rcfile a -i",
        "bash --version a",
        "bash -e --version",
        "bash -c '$0 a' rm",
        "bash -c '\"$@\"' _ rm a",
        "sh -c 'ls; rm a'",
        "zsh -fc 'rm a'",
        "fish -c 'rm a'",
    ]);
}

#[test]
fn git_does_not_run_programs_from_a_configuration() {
    assert_none_harmless(&[
        "git -c core.fsmonitor='rm a' status",
        "git -ccore.pager=rm log",
        "git --config-env=core.pager=X log",
        "git --exec-path=/tmp status",
        "git --paginate log",
        "git -p log",
        "git grep -O a",
        "git grep --open-files-in-pager=rm a",
        "git ls-remote 'ext::sh -c rm'",
        "git fetch --upload-pack='rm a' b",
        "git clone -u rm a",
        "git archive --exec=rm",
        "git bisect run rm a",
        "git rebase -x 'rm a'",
        "git submodule foreach 'rm a'",
        "git filter-branch",
        "git difftool -x rm",
        "git mergetool",
        "git help a",
        "git config alias.x '!rm a'",
        "git config --get a --global",
        "git config a b",
        "git x",
        "git remote add a b",
        "git remote show a",
        "git notes add",
        "git gc",
        "git update-ref a b",
        "git symbolic-ref HEAD a",
        "git stash",
        "git stash list --ext-diff -p",
        "git reflog expire",
        "git reflog show --textconv",
        "git worktree add a",
        "git branch a",
        "git tag a",
        "cd a; bash -c \"gi''t status\"",
        "cd a; bash -c 'g\\it status'",
        "pushd a; sh -c \"'git' status\"",
        "bash -c 'cd a; bash -c \"g\\\"\\\"it status\"'",
        "command cd a; env bash -c 'ls; gi\"\"t log'",
    ]);
}

#[test]
fn a_command_in_a_terminal_is_read_by_an_unknown_shell() {
    let class = |tool: &str, command: &str| {
        let input = seal::json::write_object(|out| out.key("command").text(command));
        assess(tool, &OwnedDoc::read(&input).unwrap().doc().root(), Folders::default()).class
    };
    for tool in ["run_in_terminal", "run_terminal_cmd"] {
        for command in ["ls -la", "grep -n 'a b' c", "test a != b", "find . ! -name b", "echo a | wc"] {
            assert_eq!(class(tool, command), Harmless, "{command}");
        }
        for command in [
            "echo \\;rm a",
            "echo \"\\\"; rm a; echo \"",
            "echo '\u{2019}; rm a; \u{2019}'",
            "echo !-1",
            "echo \"!rm\"",
            "ls; echo !!",
        ] {
            assert_ne!(class(tool, command), Harmless, "{command}");
        }
    }
    // A non-interactive shell, such as that of the tool `Bash`, parses a command as this parser does: it has no history expansion.
    assert_eq!(class("Bash", "echo \\;ls !-1"), Harmless);
}

#[test]
fn git_is_harmless_only_in_the_repository_of_the_project() {
    let base = tempfile::tempdir().unwrap();
    let root = base.path().canonicalize().unwrap();
    for name in
        ["project/.git", "project/src", "project/vendor/.git", "project/bare/objects", "project/bare/refs/a"]
    {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
    std::fs::write(root.join("project/bare/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::create_dir_all(root.join("project/linked")).unwrap();
    std::fs::write(root.join("project/linked/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(root.join("project/linked/commondir"), "../bare\n").unwrap();
    let class = |working: Option<&str>, project: Option<&str>, command: &str| {
        let input = seal::json::write_object(|out| out.key("command").text(command));
        let [working, project] = [working, project].map(|folder| folder.map(|folder| root.join(folder)));
        let [working, project] =
            [&working, &project].map(|folder| folder.as_ref().and_then(|folder| folder.to_str()));
        let folders = Folders { working, project };
        assess("Bash", &OwnedDoc::read(&input).unwrap().doc().root(), folders).class
    };
    let project = Some("project");
    assert_eq!(class(project, project, "git status"), Harmless);
    assert_eq!(class(Some("project/src"), project, "git log -1"), Harmless);
    // Not known for certain.
    assert_ne!(class(Some("project/src"), None, "git log -1"), Harmless);
    assert_ne!(class(None, project, "git log -1"), Harmless);
    assert_ne!(class(None, None, "git log -1"), Harmless);
    for working in ["project/vendor", "project/bare", "project/bare/refs/a", "project/linked", "missing", "."]
    {
        assert_ne!(class(Some(working), project, "git status"), Harmless, "{working}");
        assert_ne!(class(Some(working), project, "timeout 5 sh -c 'gi''t status'"), Harmless, "{working}");
    }
    assert_eq!(class(Some("project/vendor"), project, "ls"), Harmless);
    assert_eq!(class(None, None, "ls"), Harmless);
}
