import type { RequestEntry } from '../../http/message.ts';
import { thousandths, type Format, type LineFields, type LogLevel } from '../../log/log.ts';

export const readable: Format = { line, request };

function request(time: string, level: LogLevel, entry: RequestEntry): string {
  const {
    id,
    method,
    target,
    route = '(no route)',
    status,
    durationMs,
    bytes,
    userId,
    address,
  } = entry;
  // A person at a terminal wants to see the path of a 404. The query may hold secrets.
  const [path = ''] = target.slice(0, shownPathMax).split('?');
  const message = `${status} ${shown(method)} ${status === 404 ? shown(path) : route}`;
  const ms = thousandths(durationMs);
  return line({ time, level, kind: 'request', message, ms, bytes, userId, address, id });
}

const shownPathMax = 200;

function line({ time, level, kind, message, event, ...details }: LineFields): string {
  const head = kind === 'security' ? `security ${event}` : escapeControls(String(message));
  const pairs = Object.entries(details).map(([name, value]) =>
    value === undefined ? '' : ` ${name}=${shown(String(value))}`,
  );
  const alarm = level === 'warn' || level === 'error' ? `${level.toUpperCase()} ` : '';
  return `${time.slice(11, 23)} ${alarm}${head}${pairs.join('')}\n`;
}

const plain = /^[\w!#$%&'*+.^`|~/:@-]+$/;

/** Quotes a value that could break the line or look like another field. */
function shown(value: string): string {
  return plain.test(value) ? value : escapeControls(JSON.stringify(value));
}

/** Escapes control and direction characters, which a terminal would obey. */
function escapeControls(value: string): string {
  return value.replace(
    /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
