import type { Translations } from './translations-en.js';

export const es: Translations = {
  subject: (store) => `Tu tarjeta de sellos de ${store}`,
  intro: (store) => `Aquí tienes tu tarjeta de sellos de ${store}.`,
  open: 'Abrir mi tarjeta',
  advice:
    'Ábrela en tu móvil para añadirla a Apple Wallet o Google Wallet, o úsala directamente en el navegador. No compartas el enlace: quien lo tenga puede mostrar tu tarjeta.',
  why: (store) =>
    `Recibes este correo porque alguien indicó tu dirección para una tarjeta de sellos de ${store}. Si no fuiste tú, no tienes que hacer nada.`,
  sms: (store, link) => `Tu tarjeta de sellos de ${store}: ${link}`,
};
