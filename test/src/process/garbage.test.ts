// F45, F46: whatever comes to the port, the dispatcher lives and running streams see nothing of it.
import { test } from 'node:test';
import { connectAndClose, rawBytes, wrongInSession, wrongMessages } from './fixtures/garbage.js';

test('bytes of other protocols (F46)', rawBytes);

test('200 connections that close at once (F46)', () => connectAndClose(200));

test('ZeroMQ messages that are none of ours, also with lengths that lie (F45)', () => wrongMessages(50));

test('the same from peers that have a session', () => wrongInSession(20));
