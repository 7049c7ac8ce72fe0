// A page that contains only the AAEP subscriber, used as its README says. The package's entry points name missing files, so this imports `dist` directly.
import { createElement } from "react";
import { createRoot } from "react-dom/client";
import { AAEPSubscriber } from "./node_modules/@aaep/web-subscriber-react/dist/index.js";

const receivedEvents = (window.receivedEvents = []);
createRoot(document.getElementById("root")).render(
    createElement(AAEPSubscriber, {
        endpoint: location.origin,
        showEventLog: true,
        onEvent: (event) => receivedEvents.push(event),
        onConnectionStatus: (status) => (window.connection = status),
    }),
);
