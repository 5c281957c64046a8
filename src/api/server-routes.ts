import { content } from './route.ts';
import { healthSchema, statusSchema } from './schemas.ts';

/** The routes that tell of the server itself. */
export const serverRoutes = {
  describe: {
    method: 'GET',
    path: '/openapi.json',
    access: 'public',
    conditional: true,
    summary: 'Read this OpenAPI document',
    reply: content(200, 'This document.', { type: 'object' }, 'ETag'),
  },
  live: {
    method: 'GET',
    path: '/livez',
    access: 'public',
    summary: 'Check that the process answers',
    reply: content(200, 'The process answers.', healthSchema),
  },
  status: {
    method: 'GET',
    path: '/status',
    access: 'admin',
    summary: 'Read how the server and its store are doing',
    reply: content(200, 'The state of the server.', statusSchema),
  },
  ready: {
    method: 'GET',
    path: '/readyz',
    access: 'public',
    summary: 'Check that the server takes requests',
    reply: content(200, 'The server takes requests.', healthSchema),
    refusals: [507],
  },
} as const;
