import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CairnError } from '../../src/base/errors.ts';
import { parseJson, parseJsonBytes, parseJsonNumber, pointerTo, type JsonValue } from '../../src/base/json.ts';
import { limits } from '../../src/base/limits.ts';
import { createGenerator } from '../support/basics.ts';

/** Returns why a text is refused, or "accepted". */
function refusalOf(text: string): string {
  try {
    parseJson(text);
  } catch (error) {
    assert.ok(error instanceof CairnError, text);
    assert.equal(error.code, 'malformed_json');
    return error.message.replace('Cannot read the JSON: ', '');
  }
  return 'accepted';
}

const good = [
  '{}', '[]', '0', '-0', '""', 'true', 'false', 'null', ' \t\r\n[ 1 , 2 ] \n', '{"a":{"b":[1,-2.5e3,"x"]}}', '{"":1}',
  '"\\u0041\\n\\/\\"\\\\\\b\\f\\r\\t"', '"é😀\u2028"', '"\\ud83d\\ude00"', '"\\ud800"', '1E5', '1e-2', '0.5', '10',
  '"a string that is longer than thirteen characters"', '[[],{},[{}]]', '"\x7f"',
];

const bad = [
  '', ' ', '{', '[', '"', '"\\', '"\\"', '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', '[1,]', '[,]', '[1 2]',
  '{,}', '{1:2}', "{'a':1}", '{a:1}', '01', '-', '+1', '.5', '1.', '1.e2', '1e', '1e+', '0x10', 'NaN', 'Infinity',
  '-Infinity',
  'tru', 'nul', 'True', 'undefined', '"\t"', '"\n"', '"\0"', '"\\x41"', '"\\u12"', '"\\u12G4"', '"\\a"', '1 2', '{}{}',
  '// c\n1', '/* c */1', '\ufeff{}', '\u00a01', '\v1', '[1]]', '{"a":1 "b":2}', '{"a",1}', '{"a"::1}', '"abc\u0000"',
];

describe('JSON text', () => {
  for (const text of good) {
    test(`is read as JSON.parse reads it: ${text}`, () => assert.deepEqual(parseJson(text), JSON.parse(text)));
  }

  for (const text of bad) {
    test(`is refused as JSON.parse refuses it: ${JSON.stringify(text)}`, () => {
      assert.throws(() => JSON.parse(text));
      assert.notEqual(refusalOf(text), 'accepted');
    });
  }

  test('is refused with the place, by line and column', () => {
    assert.equal(refusalOf('{"name":"Cup",}'), 'expected a member name in double quotes at line 1, column 15');
    assert.equal(refusalOf('{\n  "a": 1,\n  "b": x\n}'), 'expected a value at line 3, column 8');
    assert.equal(refusalOf('[1,\n2\n'), 'expected "," or "]" at line 3, column 1');
    assert.equal(refusalOf('{"a" 1}'), 'expected ":" at line 1, column 6');
    assert.equal(refusalOf('{"a":1;}'), 'expected "," or "}" at line 1, column 7');
    assert.equal(refusalOf('1 1'), 'expected the end at line 1, column 3');
    const bad = 'a string is not closed, or has a control character or an invalid escape';
    assert.equal(refusalOf('"ab'), `${bad} at line 1, column 1`);
    assert.equal(refusalOf('["a\u0007"]'), `${bad} at line 1, column 2`);
    assert.equal(refusalOf('["\\x"]'), `${bad} at line 1, column 2`);
    assert.equal(refusalOf(`["${'a'.repeat(1_000_000)}`), `${bad} at line 1, column 2`);
    assert.equal(refusalOf(`["${'\\n'.repeat(500_000)}"]`), 'accepted');
  });

  test('is never quoted, because it may contain a password', () => {
    const secret = 'correct-horse';
    for (const text of [`{"password":"${secret}`, `{"password":"${secret}\\x"}`, `["${secret}" "${secret}"]`, secret]) {
      assert.ok(!refusalOf(text).includes('horse'), text);
    }
  });

  test('must not repeat a member name, even with escapes', () => {
    assert.equal(refusalOf('{"a":1,"a":1}'), 'duplicate member name at line 1, column 8');
    assert.equal(refusalOf('{"a":1,"\\u0061":2}'), 'duplicate member name at line 1, column 8');
    assert.equal(refusalOf('{"__proto__":1,"__proto__":2}'), 'duplicate member name at line 1, column 16');
    assert.deepEqual(parseJson('[{"a":1},{"a":2},{"b":{"a":3},"a":4}]'), [{ a: 1 }, { a: 2 }, { b: { a: 3 }, a: 4 }]);
  });

  test('nests as deep as the limit and no deeper', () => {
    const nested = (depth: number, open: string, close: string): string =>
      `${open.repeat(depth - 1)}[]${close.repeat(depth - 1)}`;
    for (const [open, close] of [['[', ']'], ['{"a":', '}']] as const) {
      assert.equal(refusalOf(nested(limits.jsonDepthMax, open, close)), 'accepted');
      assert.match(refusalOf(nested(limits.jsonDepthMax + 1, open, close)), /^nested more than 32 deep at line 1/);
    }
    assert.match(refusalOf('['.repeat(1_000_000)), /^nested more than 32 deep/);
  });

  test('turns names like __proto__ into ordinary members', () => {
    const value = parseJson('{"__proto__":{"admin":true},"constructor":1,"toString":2,"hasOwnProperty":3}');
    assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value));
    assert.deepEqual(Object.keys(value), ['__proto__', 'constructor', 'toString', 'hasOwnProperty']);
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
    assert.ok(!('admin' in value) && !('admin' in {}));
  });
});

describe('a number in JSON text', () => {
  const exact = [
    '0.1', '19.99', '1e12', '123456789012345', '9007199254740993000', '0.30000000000000004', '1e-7', '-0', '5e-324',
    '1.7976931348623157e308', '100000000000000000000', '1.50000000000000000000', '0.00000000000000000010', '-0.0e5',
  ];
  for (const text of exact) {
    test(`is exact: ${text}`, () => assert.ok(Object.is(parseJson(text), Number(text))));
  }

  const rounded = [
    '0.10000000000000001', '0.12345678901234567890', '0.1000000000000000055511151231257827', '1e-400', '2e-324',
    '3.14159265358979323846', '9007199254740993.5', '1.00000000000000001', `1.${'0'.repeat(1000)}1`,
  ];
  for (const text of rounded) {
    test(`is rounded if it is a fraction: ${text.slice(0, 40)}`, () => {
      assert.equal(parseJson(text), Number(text));
      assert.equal(parseJsonNumber(text), Number(text));
    });
  }

  const inexact = [
    '9007199254740993', '-9007199254740993', '123456789012345678901', '9007199254740993.0', '90071992547409930e-1',
    '1.2345678901234567891e19', '0.9007199254740993e16', `9007199254740993.${'0'.repeat(1000)}`,
  ];
  for (const text of inexact) {
    test(`is refused with its place if it is an integer that a double cannot hold: ${text.slice(0, 40)}`, () => {
      const what = 'an integer has more digits than a double holds at line';
      assert.equal(refusalOf(text), `${what} 1, column 1`);
      assert.equal(refusalOf(`{"a":[1,\n ${text}]}`), `${what} 2, column 2`);
      assert.ok(Number.isNaN(parseJsonNumber(text)));
    });
  }

  test('is infinite beyond a double', () => {
    assert.equal(parseJson('1e400'), Infinity);
    assert.equal(parseJson('-1e400'), -Infinity);
  });

  test('round-trips every double', () => {
    const random = createGenerator('doubles');
    const bits = new DataView(new ArrayBuffer(8));
    for (let round = 0; round < 5000; round += 1) {
      bits.setUint32(0, random.below(2 ** 32));
      bits.setUint32(4, random.below(2 ** 32));
      const number = bits.getFloat64(0);
      if (!Number.isFinite(number)) continue;
      for (const text of [String(number), number.toExponential()]) {
        assert.ok(Object.is(parseJson(text), number) || number === 0, text);
      }
    }
  });
});

describe('JSON bytes', () => {
  test('are UTF-8', () => {
    assert.deepEqual(parseJsonBytes(Buffer.from('{"name":"Größe 😀"}')), { name: 'Größe 😀' });
  });

  test('may contain the replacement character', () => {
    assert.equal(parseJsonBytes(Buffer.from('"\ufffd"')), '\ufffd');
  });

  for (const hex of ['22ff22', '22c0af22', '22eda08022', '22f490808022', '22e282', '80', 'fffe7b00', '7b007d00', '']) {
    test(`are refused if they are not UTF-8: ${hex}`, () => {
      assert.throws(() => parseJsonBytes(Buffer.from(hex, 'hex')), { code: 'malformed_json' });
    });
  }

  test('must not begin with a byte order mark', () => {
    assert.throws(() => parseJsonBytes(Buffer.from('efbbbf7b7d', 'hex')), /begins with a byte order mark/);
  });
});

test('the parser agrees with JSON.parse on random and damaged texts', () => {
  const random = createGenerator('JSON texts');
  const names = ['a', 'b', 'name', '__proto__', 'é', '', '\\u0061'];
  const scalars = ['0', '-1', '1.5', '1e3', 'true', 'null', '""', '"x"', '"\\n"', '"a longer string, é"', '-0.0'];
  const make = (depth: number): string => {
    const kind = depth > 5 ? 2 : random.below(3);
    const space = random.below(8) === 0 ? ' \n' : '';
    if (kind === 2) return space + random.pick(scalars) + space;
    const parts = Array.from({ length: random.below(4) }, () => make(depth + 1));
    if (kind === 0) return `[${parts.join(',')}]${space}`;
    return `{${parts.map((part) => `"${random.pick(names)}":${part}`).join(',')}}`;
  };
  const damage = (text: string): string => {
    const at = random.below(text.length + 1);
    const piece = random.pick(['', '"', ',', '{', ']', '\\', '\u0001', '0', 'e', '-', ':', ' ']);
    return text.slice(0, at) + piece + text.slice(at + random.below(2));
  };
  let refused = 0;
  let accepted = 0;
  for (let round = 0; round < 20_000; round += 1) {
    const text = round % 2 === 0 ? make(0) : damage(make(0));
    const outcome = refusalOf(text);
    if (outcome.startsWith('duplicate')) continue;
    let expected: { value: JsonValue } | undefined;
    try {
      expected = { value: JSON.parse(text) };
    } catch {
      expected = undefined;
    }
    assert.equal(outcome === 'accepted', expected !== undefined, `${text}: ${outcome}`);
    if (expected === undefined) {
      refused += 1;
    } else {
      accepted += 1;
      assert.deepEqual(parseJson(text), expected.value, text);
    }
  }
  assert.ok(refused > 1000 && accepted > 10_000, `${refused} refused, ${accepted} accepted`);
});

test('RFC 6901 §5: names in a pointer', () => {
  const pointers = ['foo', '', 'a/b', 'c%d', 'm~n', '~1', ' '].map(pointerTo);
  assert.deepEqual(pointers, ['/foo', '/', '/a~1b', '/c%d', '/m~0n', '/~01', '/ ']);
});

test('the shortcut through JSON.parse reads the same as the parser', () => {
  const inArrays = (text: string) => [text, `[${text}]`, `[{"b":1},${text}]`, ` [${text},{}]`];
  const same = (value: unknown, text: string) => assert.ok(Object.is(value, Object(parseJson(text))['a']), text);
  const numbers = ['0', '-0', '1.5', '999999999999999', '1000000000000001', '1e3', '-1E-3', '1e400',
    '123456789012345.6'];
  for (const number of numbers) {
    const [alone = null] = Object.values(Object([parseJson(number)]));
    for (const text of [`{"a":${number}}`, `{ "a" :\t${number} }`, `{"a":${number},"b":":"}`]) {
      same(alone, text);
      for (const array of inArrays(text)) {
        assert.deepEqual(Object([parseJson(array)].flat().find((value) => Object.hasOwn(Object(value), 'a'))).a, alone);
      }
      assert.deepEqual(parseJson(`[${number},true]`), [alone, true]);
    }
  }
  const refused = ['{"a":9007199254740993}', '{"a":-123456789012345678901}',
    '{"a":1,"a":2}', '{"a" : 1, "a" : 2}', '{"a":1,"\\u0061":2}', '{"a":":","a":1}',
    `{"a":${'['.repeat(40)}${']'.repeat(40)}}`, '{"a":1}x', '{"a":1,}', '{"a":01}', "{'a':1}", '{"a":"\t"}'];
  for (const text of refused.flatMap(inArrays)) assert.throws(() => parseJson(text), { code: 'malformed_json' }, text);
  const [name] = Object.getOwnPropertyNames(parseJson('{"__proto__":1}'));
  assert.equal(name, '__proto__');
});

test('long strings follow the same rules as short ones', () => {
  for (const part of ['x', '\\n', '\\u00e4', '\\\\', ':']) {
    const text = `["${part.repeat(1_000_000)}"]`;
    assert.deepEqual(parseJson(text), JSON.parse(text), part);
    assert.throws(() => parseJson(text.slice(0, -2)), { code: 'malformed_json' }, part);
  }
});

test(`an object may have ${limits.jsonMembersMax} members, and no more`, () => {
  const text = (count: number) => `[{${Array.from({ length: count }, (_, index) => `"${index}":1`).join()}}]`;
  assert.deepEqual(parseJson(text(limits.jsonMembersMax)), JSON.parse(text(limits.jsonMembersMax)));
  const refused = { code: 'content_too_large', message: /over 5000 members in one object at line 1, column \d+/ };
  assert.throws(() => parseJson(text(limits.jsonMembersMax + 1)), refused);
});

test(`a text may have ${limits.jsonValuesMax} values, and no more`, () => {
  const texts = [
    (count: number) => `[${'1,'.repeat(count - 2)}1]`,
    (count: number) => `[${'{"a":1},'.repeat(count / 2 - 2)}1,{"a":1${count % 2 === 0 ? '' : ',"b":2'}}]`,
  ];
  for (const text of texts) {
    assert.deepEqual(parseJson(text(limits.jsonValuesMax)), JSON.parse(text(limits.jsonValuesMax)));
    assert.throws(() => parseJson(text(limits.jsonValuesMax + 1)), /over 100000 values at line 1, column \d+/);
    const large = text(500_000);
    const tries = [1, 2, 3].map(() => {
      const started = process.cpuUsage();
      assert.throws(() => parseJson(large), { code: 'content_too_large' });
      return process.cpuUsage(started).user;
    });
    // The first one also compiles, and each may meet the garbage collector.
    assert.ok(Math.min(...tries) < 300_000, `${tries.join()} µs`);
  }
});
