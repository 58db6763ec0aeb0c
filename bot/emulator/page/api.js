// The control API, and changes as they happen.

export async function call(method, path, { query, body } = {}) {
  const search = query ? `?${new URLSearchParams(query)}` : "";
  let response;
  try {
    response = await fetch(`/_emulator/${path}${search}`, {
      method,
      headers: body ? { "Content-Type": "application/json" } : {},
      body: body ? JSON.stringify(body) : undefined,
    });
  } catch {
    throw new Error("The local Slack does not answer. Is it still running?");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error || `The local Slack answered ${response.status}.`);
  return answer;
}

// Calls onUpdate for every change after number `after`; the browser reconnects by itself and resumes where it was.
export function watch(after, onUpdate, onConnection) {
  const source = new EventSource(`/_emulator/updates?after=${after}`);
  source.onopen = () => onConnection(true);
  source.onerror = () => onConnection(false);
  source.onmessage = (event) => onUpdate(JSON.parse(event.data));
  return source;
}
