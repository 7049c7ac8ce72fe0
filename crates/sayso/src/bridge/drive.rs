//! An open session, driven by steps.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::Next;
use super::reply::{Allowed, Denied, Reply};
use super::report::{Fault, Notes};
use super::step::{Kind, Step, Unasked};
use crate::consent::{Action, Answer};
use crate::error::{Error, Stop};
use crate::question::{Clarified, Question};
use crate::session::{Ending, Progress, Session, Tool};

/// So many runs that are over are remembered.
const PAST: usize = 1024;

pub(super) enum Last {
    Said(Box<Ending>),
    Early,
    Stalled,
    Stopped(Stop),
}

type Goes = ControlFlow<Last>;

/// Who lets it go closes what is open.
pub(super) struct Drive<'s> {
    session: &'s Session,
    runs: HashMap<String, Run<'s>>,
    past: Past,
    asked: Vec<Asked<'s>>,
    /// Which model's text the open output is.
    writes: Option<String>,
    notes: &'s mut Notes,
}

enum Run<'s> {
    Asking,
    Open(Tool<'s>),
}

/// A question that is open.
type Asked<'s> = Pin<Box<dyn Future<Output = Settled> + Send + 's>>;

enum Settled {
    Answered {
        run: String,
        reply: Reply<Allowed>,
        answer: Result<Answer, Error>,
    },
    Clarified {
        reply: Reply<Clarified>,
        answer: Result<Clarified, Error>,
    },
    /// Nobody waits for the answer that this run needs.
    Left {
        run: Option<String>,
    },
}

impl<'s> Drive<'s> {
    pub(super) fn new(session: &'s Session, notes: &'s mut Notes) -> Self {
        Self { session, runs: HashMap::new(), past: Past::default(), asked: Vec::new(), writes: None, notes }
    }

    pub(super) async fn run(mut self, steps: &mut impl Next, silence: Duration) -> Last {
        loop {
            let session = self.session;
            let asks = !self.asked.is_empty();
            let goes = tokio::select! {
                biased;
                stop = session.stopped() => Goes::Break(Last::Stopped(stop)),
                settled = poll_fn(|context| poll_asked(&mut self.asked, context)), if asks => self.settle(settled).await,
                step = steps.next() => match step {
                    None => Goes::Break(Last::Early),
                    Some(step) => self.step(step).await,
                },
                () = tokio::time::sleep(silence), if !asks => Goes::Break(Last::Stalled),
            };
            if let Goes::Break(last) = goes {
                self.close(&last);
                return last;
            }
        }
    }

    async fn step(&mut self, step: Step) -> Goes {
        let (name, session) = (step.name(), self.session);
        let said = match step.0 {
            Kind::Decide(words) => session.decide(words).await,
            Kind::Model(words) if self.runs.values().any(|run| matches!(run, Run::Open(_))) => {
                session.progress(Progress::says(words)).await
            }
            Kind::Think(words) | Kind::Model(words) => session.think(words).await,
            Kind::Progress(progress) => session.progress(progress).await,
            Kind::Output(text) => session.output(text).await,
            Kind::Token { run, text } => self.token(run, text).await,
            Kind::Bytes(bytes) => session.output_bytes(bytes).await,
            Kind::OutputDone => session.output_done().await,
            Kind::HandOff(hand_off) => session.hand_off(*hand_off).await,
            Kind::Tool { run, call, reply } => return self.tool(run, call, reply).await,
            Kind::Ask { run, action, reply } => return self.ask(run, *action, reply).await,
            Kind::Clarify(question, reply) => return self.clarify(*question, reply).await,
            Kind::Done { run, words } => match self.ended(run) {
                None => return Goes::Continue(()),
                Some(tool) => match words {
                    Some(words) => tool.done(words).await,
                    None => tool.plainly_done().await,
                },
            },
            Kind::Failed { run, why } => match self.ended(run) {
                None => return Goes::Continue(()),
                Some(tool) => tool.failed(why).await,
            },
            Kind::TimedOut { run } => match self.ended(run) {
                None => return Goes::Continue(()),
                Some(tool) => tool.timed_out().await,
            },
            Kind::End(ending) => return Goes::Break(Last::Said(ending)),
            Kind::Start(_) => return self.fault(Fault::StartedAgain),
            Kind::Fault(fault) => return self.fault(fault),
        };
        self.said(name, said)
    }

    fn fault(&mut self, fault: Fault) -> Goes {
        self.notes.add(fault);
        Goes::Continue(())
    }

    /// What came of a step: a session that is over ends it all, anything else is a fault.
    fn said(&mut self, step: &'static str, said: Result<(), Error>) -> Goes {
        match said {
            Ok(()) => Goes::Continue(()),
            Err(Error::Stopped(stop)) => Goes::Break(Last::Stopped(stop)),
            Err(error) => self.fault(Fault::Refused { step, error }),
        }
    }

    /// The text of two models is two outputs.
    async fn token(&mut self, run: String, text: String) -> Result<(), Error> {
        if self.writes.as_ref().is_some_and(|writes| *writes != run) {
            self.session.output_done().await?;
        }
        self.writes = Some(run);
        self.session.output(text).await
    }

    async fn tool(&mut self, run: String, call: Unasked, reply: Option<Reply<Allowed>>) -> Goes {
        if self.runs.contains_key(&run) {
            return self.fault(Fault::SameRun(run));
        }
        match call.of(self.session).start().await {
            Ok(tool) => self.open(run, tool, reply, None),
            Err(error) => self.deny(run, "tool", reply, error),
        }
    }

    /// It could not be told, so it may not run.
    fn deny(&mut self, run: String, step: &'static str, reply: Option<Reply<Allowed>>, error: Error) -> Goes {
        if let Some(reply) = reply {
            reply.tell(Err(Denied::Error(error.clone())));
        }
        self.past.note(run, Was::Refused);
        self.said(step, Err(error))
    }

    fn open(
        &mut self,
        run: String,
        tool: Tool<'s>,
        reply: Option<Reply<Allowed>>,
        arguments: Option<String>,
    ) -> Goes {
        if reply.is_none_or(|reply| reply.tell(Ok(Allowed { arguments }))) {
            self.past.forget(&run);
            self.runs.insert(run, Run::Open(tool));
        } else {
            // Nobody will run it: it is dropped, and so said to have been left.
            self.in_vain(run);
        }
        Goes::Continue(())
    }

    fn in_vain(&mut self, run: String) {
        self.past.note(run.clone(), Was::Refused);
        self.notes.add(Fault::NobodyWaited(run));
    }

    async fn ask(&mut self, run: String, action: Action, mut reply: Reply<Allowed>) -> Goes {
        if self.runs.contains_key(&run) {
            return self.fault(Fault::SameRun(run));
        }
        self.past.forget(&run);
        self.runs.insert(run.clone(), Run::Asking);
        let session = self.session;
        self.wait(Box::pin(async move {
            tokio::select! {
                biased;
                answer = session.ask(action) => Settled::Answered { run, reply, answer },
                () = reply.left() => Settled::Left { run: Some(run) },
            }
        }))
        .await
    }

    async fn clarify(&mut self, question: Question, mut reply: Reply<Clarified>) -> Goes {
        let session = self.session;
        self.wait(Box::pin(async move {
            tokio::select! {
                biased;
                answer = session.clarify(question) => Settled::Clarified { reply, answer },
                () = reply.left() => Settled::Left { run: None },
            }
        }))
        .await
    }

    /// Asks at once, so that it is asked in its order, and waits beside everything else.
    async fn wait(&mut self, mut asked: Asked<'s>) -> Goes {
        match poll_fn(|context| Poll::Ready(asked.as_mut().poll(context))).await {
            Poll::Ready(settled) => self.settle(settled).await,
            Poll::Pending => {
                self.asked.push(asked);
                Goes::Continue(())
            }
        }
    }

    async fn settle(&mut self, settled: Settled) -> Goes {
        let (run, reply, answer) = match settled {
            Settled::Answered { run, reply, answer } => (run, reply, answer),
            Settled::Clarified { reply, answer } => {
                let error = answer.as_ref().err().cloned();
                reply.tell(answer.map_err(Denied::Error));
                return self.said("clarify", error.map_or(Ok(()), Err));
            }
            Settled::Left { run } => {
                if let Some(run) = run {
                    self.runs.remove(&run);
                    self.in_vain(run);
                }
                return Goes::Continue(());
            }
        };
        self.runs.remove(&run);
        let granted = match answer {
            Ok(Answer::Granted(granted)) => granted,
            Ok(Answer::Refused(why)) => {
                reply.tell(Err(Denied::Refused(why)));
                self.past.note(run, Was::Refused);
                return Goes::Continue(());
            }
            Err(error) => return self.deny(run, "ask", Some(reply), error),
        };
        if reply.is_in_vain() {
            self.in_vain(run);
            return Goes::Continue(());
        }
        let arguments = granted.arguments().to_owned();
        match self.session.begin(granted).await {
            Ok(tool) => self.open(run, tool, Some(reply), Some(arguments)),
            Err(error) => self.deny(run, "tool", Some(reply), error),
        }
    }

    /// The tool that a run is the end of.
    fn ended(&mut self, run: String) -> Option<Tool<'s>> {
        match self.runs.remove(&run) {
            Some(Run::Open(tool)) => {
                self.past.note(run, Was::Ended);
                return Some(tool);
            }
            Some(asking) => {
                self.runs.insert(run.clone(), asking);
                self.notes.add(Fault::NotAllowed(run));
            }
            None => self.notes.add(match self.past.of(&run) {
                None => Fault::NeverStarted(run),
                Some(Was::Ended) => Fault::EndedAgain(run),
                Some(Was::Refused) => Fault::NotAllowed(run),
            }),
        }
        None
    }

    /// What is open when the session ends is closed by dropping it, in the order in which it is dropped.
    fn close(&mut self, last: &Last) {
        if matches!(last, Last::Stopped(_)) {
            return;
        }
        let open = self.runs.drain().filter(|(_, run)| matches!(run, Run::Open(_)));
        let mut never: Vec<_> = open.map(|(run, _)| run).collect();
        never.sort_unstable();
        for run in never {
            self.notes.add(Fault::NeverEnded(run));
        }
    }
}

fn poll_asked(asked: &mut Vec<Asked<'_>>, context: &mut Context<'_>) -> Poll<Settled> {
    for at in 0..asked.len() {
        if let Some(one) = asked.get_mut(at)
            && let Poll::Ready(settled) = one.as_mut().poll(context)
        {
            drop(asked.remove(at));
            return Poll::Ready(settled);
        }
    }
    Poll::Pending
}

#[derive(Clone, Copy)]
enum Was {
    Ended,
    Refused,
}

/// The latest runs that are over.
#[derive(Default)]
struct Past(VecDeque<(String, Was)>);

impl Past {
    fn of(&self, run: &str) -> Option<Was> {
        self.0.iter().find(|(known, _)| known == run).map(|(_, was)| *was)
    }

    fn note(&mut self, run: String, was: Was) {
        self.forget(&run);
        self.0.push_back((run, was));
        if self.0.len() > PAST {
            self.0.pop_front();
        }
    }

    /// The name is used again.
    fn forget(&mut self, run: &str) {
        self.0.retain(|(known, _)| known != run);
    }
}
