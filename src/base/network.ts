import { isIPv6 } from 'node:net';

/** The network that one caller may have all of: the address itself, of IPv6 the first 64 bits (RFC 4291 §2.5.4). */
export function networkOf(address: string): string {
  const [plain = ''] = address.split('%');
  if (!isIPv6(plain)) return address;
  const [head = '', tail] = plain.toLowerCase().split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  // An IPv4 address at the end stands for two groups.
  const length = before.length + after.length + (plain.includes('.') ? 1 : 0);
  const groups = tail === undefined ? before : [...before, ...new Array<string>(8 - length).fill('0'), ...after];
  return groups.slice(0, 4).map((group) => group.replace(/^0+(?=.)/, '')).join(':');
}
