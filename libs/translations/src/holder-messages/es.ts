import type { HolderMessageTexts } from './en.js';

export const holderMessages: HolderMessageTexts = {
  open: 'Abrir tu tarjeta',
  why: (store) => `Recibes este mensaje porque tienes una tarjeta de ${store}.`,
  stop: 'No recibir más mensajes',
  sms: (store, text, link) => `${store}: ${text} Tarjeta y baja: ${link}`,
  page: {
    title: (store) => `Mensajes de ${store}`,
    on: 'La tienda puede escribirte: en la tarjeta de tu Wallet, en este navegador y, si lo aceptaste, por correo o SMS.',
    off: 'Ya no recibes mensajes de esta tienda. Tu tarjeta y tus sellos siguen igual.',
    stop: 'Parar todos los mensajes',
    allow: 'Permitir mensajes de nuevo',
    back: 'Volver a la tarjeta',
  },
};
