// Shows the desktop in this page, as large as it fits. What the desktop puts on its clipboard stays there.
import RFB from "./novnc/core/rfb.js";

const told = document.getElementById("told");
const words = document.getElementById("words");
const again = document.getElementById("again");
const screen = document.getElementById("screen");
const address = new URL("websocket", location.href);
address.protocol = address.protocol === "https:" ? "wss:" : "ws:";

const TRIES = 30; // while it may still be starting
const PAUSE = 1000; // ms

let desktop;
let tries = 0;

function tell(text, ended) {
  words.textContent = text;
  told.hidden = !text;
  again.hidden = !ended;
}

function connect() {
  tell("Connecting ...", false);
  desktop = new RFB(screen, address.href, { shared: true });
  desktop.scaleViewport = true;
  desktop.background = "#222831";
  desktop.addEventListener("connect", () => {
    tries = TRIES;
    tell("", false);
    desktop.focus();
  });
  desktop.addEventListener("disconnect", (event) => {
    tries += 1;
    if (tries < TRIES) {
      setTimeout(connect, PAUSE);
      return;
    }
    tell(event.detail.clean ? "The desktop was closed." : "The desktop is gone: is its sandbox still running?", true);
  });
}

again.addEventListener("click", () => {
  tries = 0;
  connect();
});
window.addEventListener("paste", (event) => desktop.clipboardPasteFrom(event.clipboardData.getData("text")));
connect();
