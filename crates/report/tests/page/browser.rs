//! A browser without a window, driven as a developer's tools drive it: commands and events in JSON
//! over a pipe.

use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Nothing takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page.
pub struct Browser {
    process: Child,
    directory: PathBuf,
    commands: File,
    messages: Receiver<Value>,
    session: Option<String>,
    number: u64,
    /// Addresses that were asked for.
    pub requests: Vec<String>,
    /// What scripts complained of.
    pub complaints: Vec<String>,
}

impl Browser {
    /// Starts one whose page is so wide and so high.
    pub fn start(width: u32, height: u32) -> Browser {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("paternoster-page-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        for pipe in ["commands", "messages"] {
            assert!(Command::new("mkfifo").arg(directory.join(pipe)).status().unwrap().success());
        }
        // The browser reads its third descriptor and writes its fourth.
        let line = "exec chromium --headless --no-sandbox --disable-gpu --no-first-run \
                    --remote-debugging-pipe --user-data-dir=\"$0/profile\" \
                    --window-size=\"$1\" 3<\"$0/commands\" 4>\"$0/messages\"";
        let process = Command::new("sh")
            .args(["-c", line])
            .arg(&directory)
            .arg(format!("{width},{height}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let commands = OpenOptions::new().write(true).open(directory.join("commands")).unwrap();
        let messages = read(File::open(directory.join("messages")).unwrap());
        let (requests, complaints) = (Vec::new(), Vec::new());
        let (session, number) = (None, 0);
        let mut browser = Browser {
            process,
            directory,
            commands,
            messages,
            session,
            number,
            requests,
            complaints,
        };
        browser.attach();
        browser
    }

    fn attach(&mut self) {
        let made = self.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": made["targetId"], "flatten": true });
        let attached = self.call("Target.attachToTarget", target);
        self.session = attached["sessionId"].as_str().map(String::from);
        for domain in ["Page", "Runtime", "Network", "Accessibility"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
    }

    /// A command and its answer.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut command = json!({ "id": self.number, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.commands.write_all(command.to_string().as_bytes()).unwrap();
        self.commands.write_all(&[0]).unwrap();
        loop {
            let mut message = self.messages.recv_timeout(PATIENCE).expect("the browser answers");
            if message["id"] == json!(self.number) {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.note(&message);
        }
    }

    /// Something happened.
    fn note(&mut self, message: &Value) {
        let text = |it: &Value| it.as_str().unwrap_or_default().to_string();
        match message["method"].as_str() {
            Some("Network.requestWillBeSent") => {
                self.requests.push(text(&message["params"]["request"]["url"]));
            }
            Some("Runtime.exceptionThrown") => {
                self.complaints.push(message["params"]["exceptionDetails"].to_string());
            }
            _ => {}
        }
    }

    /// Opens a file and waits until its scripts are done; how long that took.
    pub fn open(&mut self, file: &Path, hash: &str) -> Duration {
        let began = Instant::now();
        let url = format!("file://{}{hash}", file.display());
        self.call("Page.navigate", json!({ "url": url }));
        while self.ask("document.documentElement?.dataset.ready ?? ''") != json!("yes") {
            assert!(began.elapsed() < PATIENCE, "ready in time: {:?}", self.complaints);
            std::thread::sleep(Duration::from_millis(5));
        }
        began.elapsed()
    }

    /// The value of an expression in the page.
    pub fn ask(&mut self, expression: &str) -> Value {
        let asked = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true
        });
        let mut answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str) {
        let mut event = json!({ "type": "keyDown", "key": key });
        if key.chars().count() == 1 {
            event["text"] = json!(key);
        }
        self.call("Input.dispatchKeyEvent", event);
        self.call("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key }));
        self.frame();
    }

    /// Clicks into the middle of what a selector finds.
    pub fn click(&mut self, selector: &str) {
        let place = format!(
            "(() => {{ const it = document.querySelector('{selector}'); it.scrollIntoView(); \
             const box = it.getBoundingClientRect(); \
             return [box.left + box.width / 2, box.top + box.height / 2]; }})()"
        );
        let place = self.ask(&place);
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({
                "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1
            });
            self.call("Input.dispatchMouseEvent", event);
        }
        self.frame();
    }

    /// Waits until what has changed is drawn.
    pub fn frame(&mut self) {
        self.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
    }
}

/// Messages, each of which ends with a zero.
fn read(pipe: File) -> Receiver<Value> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut bytes = Vec::new();
        while pipe.read_until(0, &mut bytes).is_ok_and(|read| read > 0) {
            bytes.pop();
            let message = serde_json::from_slice(&bytes).unwrap_or_default();
            bytes.clear();
            if send.send(message).is_err() {
                break;
            }
        }
    });
    receive
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
