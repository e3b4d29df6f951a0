//! Adds to generated folders what only some of them have: Git worktrees, copies of one session in two
//! projects, transcripts of several megabytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use claude_wire::transcript::project_folder_name;

use crate::conversation::{Conversation, Generated};
use crate::feature::Profile;
use crate::folder::{Folder, Session, Writer};
use crate::random::Random;

impl Folder {
    /// Adds what the folder of this seed has.
    pub(crate) fn add_extras(&mut self, seed: u64, work: &Path, writer: &mut Writer<'_>) {
        // Numbers of its own, so that the rest of the folder does not depend on it.
        let mut random = Random::new(seed ^ 0xe87a);
        match seed % 16 {
            1 | 12 => self.add_worktrees(&mut random, &work.join(format!("{seed}")), writer),
            2 | 4 | 11 => self.add_copy(&mut random, &work.join(format!("{seed}")), writer),
            6 if seed % 32 == 6 => self.add_huge(&mut random, writer),
            8 if seed % 32 == 24 => self.add_huge(&mut random, writer),
            _ => {}
        }
    }

    /// Adds a repository with worktrees, each with sessions, also below its root.
    fn add_worktrees(&mut self, random: &mut Random, work: &Path, writer: &mut Writer<'_>) {
        let repository = work.join("repository");
        fs::create_dir_all(&repository).unwrap();
        git(&repository, &["init", "--quiet"]);
        git(&repository, &["commit", "--quiet", "--allow-empty", "--message", "first"]);
        let mut places = vec![repository.clone(), repository.join("below")];
        fs::create_dir(&places[1]).unwrap();
        for at in 0..=random.below(2) {
            let worktree = work.join(format!("worktree.{at}"));
            let branch = format!("branch{at}");
            let add = ["worktree", "add", "--quiet", "-b", &branch];
            git(&repository, &[&add[..], &[worktree.to_str().unwrap()]].concat());
            places.push(worktree);
        }
        if random.chance(50) {
            // Deleted without telling Git.
            let gone = work.join("gone");
            git(&repository, &["worktree", "add", "--quiet", "-b", "gone", gone.to_str().unwrap()]);
            self.add_session(random, &gone, writer);
            fs::remove_dir_all(&gone).unwrap();
        }
        for place in places {
            self.add_session(random, &place, writer);
            self.projects.push(place);
        }
    }

    fn add_session(&mut self, random: &mut Random, project: &Path, writer: &mut Writer<'_>) {
        let session = self.session(random, project, writer);
        self.sessions.push(session);
    }

    /// Adds one session to two projects, as users do who copy a file. The copies differ.
    fn add_copy(&mut self, random: &mut Random, work: &Path, writer: &mut Writer<'_>) {
        let other = work.join("copy");
        fs::create_dir_all(&other).unwrap();
        let mut projects = [self.projects[0].clone(), other.clone()];
        self.projects.push(other);
        random.shuffle(&mut projects);
        let id = random.uuid();
        let cwd = projects[0].to_str().unwrap();
        let transcript = Conversation::new(random, &id, cwd).generate(self.profile);
        let mut shorter = transcript.bytes.clone();
        if random.chance(50) {
            let end = shorter[..shorter.len() / 2].iter().rposition(|byte| *byte == b'\n');
            shorter.truncate(end.map_or(shorter.len(), |at| at + 1));
        }
        for (project, bytes) in projects.iter().zip([&transcript.bytes, &shorter]) {
            writer.minute += 1;
            writer.write(&place(project).join(format!("{id}.jsonl")), bytes);
            let result = place(project).join(&id).join("tool-results/result.txt");
            writer.write(&result, b"a result");
        }
        let [project, copy] = projects;
        let copies = vec![copy];
        self.sessions.push(Session { id, project, transcript, agents: Vec::new(), copies });
    }

    /// Adds a session of more than 5 MiB, of which lists read the ends.
    fn add_huge(&mut self, random: &mut Random, writer: &mut Writer<'_>) {
        let (id, project) = (random.uuid(), self.projects[0].clone());
        let cwd = project.to_str().unwrap();
        let transcript = Conversation::new(random, &id, cwd).generate_huge(self.profile);
        assert!(transcript.bytes.len() > 5 << 20);
        writer.minute += 1;
        writer.write(&place(&project).join(format!("{id}.jsonl")), &transcript.bytes);
        let (agents, copies) = (Vec::new(), Vec::new());
        self.sessions.push(Session { id, project, transcript, agents, copies });
    }
}

impl Conversation<'_> {
    /// Generates a transcript of more than 5 MiB, most of it in the middle.
    fn generate_huge(mut self, profile: Profile) -> Generated {
        self.turns(2, profile);
        let words = 40_000 + self.random.below(20_000);
        self.padding(18, words);
        if self.random.chance(50) {
            self.compaction(profile);
        }
        self.turns(1, profile);
        self.padding(3, 25_000);
        self.generate(profile)
    }
}

/// The project folder of a directory.
fn place(project: &Path) -> PathBuf {
    Path::new("projects").join(project_folder_name(project.to_str().unwrap()))
}

fn git(directory: &Path, arguments: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "user.name=test", "-c", "user.email=test@localhost"])
        .args(["-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "git {arguments:?}");
}
