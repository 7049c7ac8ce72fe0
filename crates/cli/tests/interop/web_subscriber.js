// A page with nothing on it but AAEP's own subscriber, used as its README says. Its package's entries name files that are not in it.
import { createElement } from "react";
import { createRoot } from "react-dom/client";
import { AAEPSubscriber } from "./node_modules/@aaep/web-subscriber-react/dist/index.js";

const heard = (window.heard = []);
createRoot(document.getElementById("root")).render(
    createElement(AAEPSubscriber, {
        endpoint: location.origin,
        showEventLog: true,
        onEvent: (event) => heard.push(event),
        onConnectionStatus: (status) => (window.connection = status),
    }),
);
